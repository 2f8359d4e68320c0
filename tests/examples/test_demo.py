"""What `make demo` prints about the larger case, and where its times stand in the result."""

import json

import demo
import pytest

CORES = 3


@pytest.fixture
def planted(monkeypatch):
    """Return a function that makes trainings end at once, with `cuts` by the number of ranks."""

    def plant(cuts):
        def train(ranks, case, out, *words):
            return {"wall_s": 6.0 / ranks, "cuts_sha256": cuts[ranks]}

        monkeypatch.setattr(demo, "train", train)

    return plant


def test_both_times_stand_behind_the_optimum(tmp_path, planted, capsys):
    planted({1: "same", CORES: "same"})
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"known_optimum": 2.5, "relative_difference": 0.0, "case": "x"}))
    demo.put_first(result, demo.compare(tmp_path, CORES))
    assert json.loads(result.read_text()) == {
        "known_optimum": 2.5,
        "relative_difference": 0.0,
        "larger_case_s": {"1": 6.0, "3": 2.0},
        "larger_case_cuts_sha256": "same",
        "case": "x",
    }
    assert list(json.loads(result.read_text()))[2] == "larger_case_s"
    assert (
        "3 ranks are 3.00 times as fast as one\ncuts sha256 of both: same"
        in capsys.readouterr().out
    )


def test_other_cuts_end_the_demo_with_exit_code_1(tmp_path, planted):
    planted({1: "one", CORES: "another"})
    with pytest.raises(SystemExit, match="the cuts differ"):
        demo.compare(tmp_path, CORES)
