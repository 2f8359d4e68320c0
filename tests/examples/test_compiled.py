"""Compiled code is removed when the sources change; one rank compiles for all ranks."""

import errno
import fcntl
import os
import pathlib

import pytest
from compiled import compiled_by_one, forget_stale_code

from cobre_comm.check.sddp import example_folder
from tests.command import python


def test_changed_sources_empty_the_cache(tmp_path):
    folder = tmp_path / "simplex"
    folder.mkdir()
    source = folder / "solve.py"
    source.write_text("x = 1")
    assert not forget_stale_code(tmp_path)
    cached = folder / "__pycache__" / "solve.reoptimise-1.py311.nbi"
    cached.parent.mkdir()
    cached.write_bytes(b"code")
    assert not forget_stale_code(tmp_path)
    assert cached.exists()
    source.write_text("x = 2")
    assert forget_stale_code(tmp_path)
    assert not cached.exists()
    assert not forget_stale_code(tmp_path)


def test_a_read_only_folder_keeps_its_cache(tmp_path, monkeypatch):
    def refuse(path, missing_ok):
        raise OSError(errno.EROFS, "Read-only file system", path)

    cached = tmp_path / "__pycache__" / "solve.reoptimise-1.py311.nbi"
    cached.parent.mkdir()
    cached.write_bytes(b"code")
    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    assert forget_stale_code(tmp_path)


def test_one_rank_compiles_where_nothing_can_be_written_to(tmp_path):
    source = tmp_path / "compiled.py"
    source.touch(mode=0o444)
    tmp_path.chmod(0o555)
    with compiled_by_one(source), source.open() as again, pytest.raises(BlockingIOError):
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list(tmp_path.iterdir()) == [source]


def test_training_writes_to_nothing_that_lies_in_the_common_temporary_folder(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f"cobre-sddp-{os.getuid()}.lock", "cobre_comm"):
        (tmp_path / name).symlink_to(victim)
    folder = example_folder()
    case, environ = folder / "cases/gen_h4_t5_k3.json", {**os.environ, "TMPDIR": str(tmp_path)}
    python(folder / "train.py", case, "--iterations", "1", within_s=200, env=environ)
    assert victim.read_text() == "precious"
