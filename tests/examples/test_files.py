"""A file is replaced as a whole or not at all, also through links, and keeps its mode."""

import json
import os
import stat
import threading

import files
import pytest
import simulate
import train
from conftest import EXAMPLE
from files import draft_of, replacing, unwritable, write_text
from training.run import run_training

from tests.command import python

SMALL = "gen_h4_t5_k3"


@pytest.fixture
def full(tmp_path):
    """Return a function that makes a file on a full disk: the next write to the file fails."""

    def file(name, text):
        path = tmp_path / name
        path.write_text(text)
        draft_of(path).symlink_to("/dev/full")
        return path

    return file


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def fail_within(path, error):
    """Raise an error when half of a file has been written."""
    with replacing(path) as file:
        file.write(b"half")
        raise error


def test_a_new_file_replaces_the_old_one_when_it_is_whole(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, "old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names_in(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_file_before_and_no_draft(tmp_path, error):
    path = tmp_path / "a.json"
    write_text(path, "old")
    with pytest.raises(error):
        fail_within(path, error)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.json"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_leads_to_the_new_file(tmp_path, exists):
    large, link = tmp_path / "large" / "a.json", tmp_path / "small" / "a.json"
    for path in (large, link):
        path.parent.mkdir()
    if exists:
        large.write_text("old")
    link.symlink_to("../large/a.json")
    write_text(link, "new")
    assert link.is_symlink()
    assert (large.read_text(), names_in(large.parent)) == ("new", ["a.json"])
    assert names_in(link.parent) == ["a.json"]


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o664])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a.json"
    write_text(path, "old")
    path.chmod(mode)
    with replacing(path) as file:
        assert stat.S_IMODE(draft_of(path).stat().st_mode) == mode, "nobody else reads a draft"
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_is_no_file_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told = []
    reader = threading.Thread(target=lambda: told.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "told")
    reader.join(30.0)
    assert told == ["told"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert unwritable("p", {"--out": pipe}) == []


def test_where_a_file_cannot_be_written_is_known_before(tmp_path, monkeypatch):
    (tmp_path / "dangling").symlink_to("gone/a.json")
    for path in (tmp_path, tmp_path / "gone" / "a.json", tmp_path / "dangling"):
        assert "cannot write --out" in unwritable("p", {"--out": path})[0]
    assert unwritable("p", {"--out": None, "--plot": tmp_path / "a.png"}) == []
    # The test plants this answer, because root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    assert "can be written to" in unwritable("p", {"--out": tmp_path / "a.json"})[0]


def test_a_full_disk_leaves_the_results_before_and_is_told(cases, full, tmp_path, capsys):
    out, plot = full("r.json", "old"), full("p.svg", "old")
    words = [str(cases / f"{SMALL}.json"), "--quiet", "--iterations", "2"]
    assert train.main([*words, "--out", str(out), "--plot", str(plot)]) == 2
    errors = capsys.readouterr().err
    for option, path in (("--out", out), ("--plot", plot)):
        assert f"cannot write {option} {path}: No space left on device; make room" in errors
        assert path.read_text() == "old"
    assert errors.count("\n") == 2
    assert sorted(names_in(tmp_path)) == ["p.svg", "r.json"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_leaves_the_tables_before_and_is_told(
    cases, comm, full, tmp_path, capsys, ending
):
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not required")
    case, policy = cases / f"{SMALL}.json", tmp_path / "policy"
    run_training(case, comm, iterations=2, checkpoint=policy)
    out, table = full("r.json", "old"), full(f"t.{ending}", "old")
    words = [str(case), str(policy), "--quiet", "--scenarios", "400"]
    assert simulate.main([*words, "--out", str(out), "--table", str(table)]) == 2
    errors = capsys.readouterr().err
    for option, path in (("--out", out), ("--table", table)):
        assert f"cannot write {option} {path}: No space left on device; make room" in errors
        assert path.read_text() == "old"
    assert "Traceback" not in errors
    assert not list(tmp_path.glob("*.part"))


def test_a_generated_case_leaves_the_one_before(full):
    path = full("case.json", "old")
    done = python(EXAMPLE / "generate.py", path, code=2, within_s=100)
    assert "No space left on device" in done.stderr
    assert path.read_text() == "old"


def test_a_checkpoint_behind_a_link_is_replaced_there(cases, comm, tmp_path):
    large, link = tmp_path / "large" / "a.ckpt", tmp_path / "a.ckpt"
    large.parent.mkdir()
    link.symlink_to(large)
    run_training(cases / f"{SMALL}.json", comm, iterations=2, checkpoint=link)
    large.chmod(0o640)
    training = run_training(cases / f"{SMALL}.json", comm, iterations=4, checkpoint=link)
    assert training.resumed_after == 2
    assert link.is_symlink()
    assert stat.S_IMODE(large.stat().st_mode) == 0o640
    assert b'"iterations": 4' in large.read_bytes()[:2000]
    assert names_in(large.parent) == ["a.ckpt"]


def test_outputs_are_whole(cases, tmp_path):
    out = tmp_path / "r.json"
    words = [str(cases / f"{SMALL}.json"), "--quiet", "--iterations", "2", "--out", str(out)]
    for _ in range(2):
        assert train.main(words) == 0
        assert json.loads(out.read_text())["iterations"] == 2
    assert files.target_of(out) == out.resolve()
