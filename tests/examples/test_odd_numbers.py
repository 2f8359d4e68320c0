"""Useless numbers, names and disks give an error of one sentence, and no half-written result."""

import json
import os
import resource

import numpy as np
import pytest
import train
from case.random_case import Shape, generate
from case.read import parse_case
from cobre.__main__ import main
from cobre.write import NotInCobre, write_case
from cobre_variants import edit, rows
from conftest import EXAMPLE
from training.loop.memory import TRACE
from training.plan import Options
from training.run import Run, StageInfeasible
from training.share import shared_setting

from tests.launch.command import cobre

SHAPE = Shape(hydros=2, thermals=2, stages=4, openings=2)
MEMORY = 4 << 30


def case_file(tmp_path, **fields):
    """Write a case with other fields, and return its path."""
    path = tmp_path / "case.json"
    path.write_text(json.dumps(generate(SHAPE, 3) | fields))
    return path


def cost(value):
    """Return thermal plants that have this cost."""
    return [plant | {"cost": value} for plant in generate(SHAPE, 3)["thermals"]]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"stages": 10**9}, "found a list of 4, expected a list of 1000000000 (one per stage)"),
        ({"stages": 10**19}, "found a list of 4, expected a list of 10000000000000000000"),
        ({"name": "\ud800"}, 'name: found "\\ud800", expected text without halves of a surrogate'),
        ({"deficit_cost": 1e308}, "deficit_cost: found 1e+308, expected a number of at most 1e+30"),
        ({"thermals": cost(1e308)}, "thermals[0].cost: found 1e+308, expected a number of at most"),
        ({"thermals": cost(-1e31)}, "thermals[0].cost: found -1e+31, expected a number of at most"),
        ({"discount": [1e300] * 4}, "discount[0]: found 1e+300, expected a number of at most"),
    ],
)
def test_what_no_case_has_is_refused_before_memory_is_taken(tmp_path, capsys, fields, told):
    path, before = case_file(tmp_path, **fields), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (min(MEMORY, *filter(lambda n: n > 0, before), MEMORY), before[1])
    )
    try:
        assert train.main([str(path), "--quiet"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", ["lower_bound", "mean"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bound_that_is_no_finite_number_ends_the_training(comm, name, value):
    case = parse_case(json.dumps(generate(SHAPE, 3)).encode(), "case.json")
    line = np.zeros(1, TRACE)[0]
    line[name] = value
    with shared_setting(comm, case) as setting:
        run = Run(setting, Options(3))
        try:
            with pytest.raises(StageInfeasible, match="the bounds of iteration 1 are no finite"):
                run.note(line, lambda *_: None)
        finally:
            run.close()


@pytest.mark.parametrize("discount", [0.0, 1e-30])
def test_a_discount_without_a_rate_is_told_and_no_folder_is_made(tmp_path, capsys, discount):
    path, folder = case_file(tmp_path, discount=discount), tmp_path / "folder"
    assert main([str(path), "--as", str(folder)]) == 2
    assert "costs that count next to nothing in a later stage" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_whole_is_not_made(tmp_path, monkeypatch):
    case = parse_case(case_file(tmp_path).read_bytes(), "case.json")
    before = set(tmp_path.iterdir())
    monkeypatch.setitem(write_case.__globals__, "write_scenarios", fail)
    with pytest.raises(OSError, match="No space left"):
        write_case(case, tmp_path / "folder", 8, 3)
    assert set(tmp_path.iterdir()) == before


def fail(*_):
    """Fail as a write to a full disk does."""
    raise OSError(28, os.strerror(28), "noise_openings.parquet")


def test_a_folder_of_another_case_is_left_as_it_is(tmp_path, capsys):
    path, folder = case_file(tmp_path), tmp_path / "folder"
    assert main([str(path), "--as", str(folder)]) == 0
    files = sorted(folder.rglob("*"))
    assert main([str(path), "--as", str(folder)]) == 2
    assert capsys.readouterr().err.endswith(f"{folder}: Directory not empty\n")
    assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize("change", ["equal", "free"])
def test_prices_that_cobre_refuses_are_not_written(tmp_path, change):
    content = generate(Shape(hydros=2, thermals=2, stages=3, openings=2, buses=2), 3)
    for bus in content["buses"]:
        if change == "equal":
            bus["deficit"][0]["cost"] = bus["deficit"][1]["cost"]
        else:
            bus["excess_cost"] = 0.0
    told = {"equal": "a deficit that do not rise in price", "free": "an excess without a price"}
    with pytest.raises(NotInCobre, match=told[change]):
        write_case(parse_case(json.dumps(content).encode(), "case.json"), tmp_path / "f", 8, 3)


def test_a_full_disk_at_a_checkpoint_is_told_by_the_rank_that_writes(tmp_path):
    path, file = case_file(tmp_path), tmp_path / "a.ckpt"
    file.with_name("a.ckpt.part").symlink_to("/dev/full")
    words = EXAMPLE / "train.py", path, "--iterations", 3, "--quiet", "--checkpoint", file
    done = cobre("run", "-n", 2, "--backend", "shm", *words, within_s=300)
    assert done.returncode == 1
    assert f"cannot write the checkpoint {file}: No space left on device" in done.stderr
    assert "rank 1 failed" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not file.exists()


def test_openings_beyond_memory_are_neither_drawn_nor_looked_for(tmp_path, capsys):
    folder = tmp_path / "folder"
    write_case(parse_case(case_file(tmp_path).read_bytes(), "case.json"), folder, 8, 3)
    (folder / "scenarios/noise_openings.parquet").unlink()
    source = {"seed": 1}
    edit(folder, "config", lambda c: c["training"].update(scenario_source=source))
    edit(folder, "stages", lambda c: c["stages"][0].update(num_openings=2**31 - 1))
    assert train.main([str(folder), "--quiet"]) == 2
    told = "the openings of all stages: found 2147483653, expected at most"
    assert told in capsys.readouterr().err
    last = {"stage_id": [0], "opening_index": [2**31 - 2], "entity_index": [0], "value": [1.0]}
    rows(folder, "scenarios/noise_openings", **last)
    source["openings"] = {"source": "file"}
    edit(folder, "config", lambda c: c["training"].update(scenario_source=source))
    edit(folder, "stages", lambda c: [s.update(num_openings=1) for s in c["stages"][1:]])
    assert train.main([str(folder), "--quiet"]) == 2
    assert "stage_id 0, opening_index 0, entity_index 0: found no row" in capsys.readouterr().err
