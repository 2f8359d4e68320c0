"""`tests/rungs.py` decides which tests each run has; here it decides about made-up rows."""

import pathlib
import re

import pytest

from tests import rungs

ROOT = pathlib.Path(__file__).parents[2]


class Row:
    """A row of a test, with what pytest's collection says about it."""

    def __init__(self, nodeid, *marks, **params):
        self.nodeid = nodeid
        self.marks = {mark: getattr(pytest.mark, mark) for mark in marks}
        if params:
            self.callspec = type("CallSpec", (), {"params": params})

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, mark):
        self.marks[mark.name] = mark


def usual(rows, costs, keeps_promise=False):
    """Return the rows that `make test` has, each by the part of its name in brackets."""

    def cost(row):
        return costs.get(row.nodeid, 0.0)

    found = rungs.usual_of(rows, cost)
    if keeps_promise:
        found |= rungs.kept_of(rows, cost, found)
    return {row.nodeid.partition("[")[2].rstrip("]") for row in found}


def test_a_costly_test_leaves_unless_it_keeps_a_promise_or_is_quick():
    rows = [Row("a[shm-2]"), Row("a[shm-3]"), Row("a[tcp-2]"), Row("a[mpi-mpich-2]", "slow")]
    costs = {"a[shm-2]": 9.0, "a[shm-3]": 5.0, "a[tcp-2]": rungs.USUAL_S + 0.1}
    assert usual(rows, costs) == set()
    assert usual(rows, costs, keeps_promise=True) == {"shm-3", "tcp-2"}
    costs["a[tcp-2]"] = rungs.PROMISE_S + 0.1
    more = [*rows, Row("other[tcp-2]"), Row("third[shm-2]")]
    costs["third[shm-2]"] = rungs.PROMISE_S
    assert usual(more, costs, keeps_promise=True) == {"tcp-2", "shm-2"}, "cheaper rows suffice"
    assert usual([Row("b[x]", "quick")], {"b[x]": 9.0}) == {"x"}
    assert usual([Row("c[x]")], {}) == {"x"}, "a test without a recorded cost"


def test_combinations_of_values_leave_unless_they_cost_next_to_nothing():
    rows = [Row(f"a[{x}-{y}]", x=x, y=y) for x in "123" for y in "123"]
    dear = dict.fromkeys([row.nodeid for row in rows], rungs.COMBINED_S + 0.1)
    assert len(usual(rows, dear)) == 3, "each value once"
    assert len(usual(rows, {})) == 9


def test_no_test_is_lost(monkeypatch, tmp_path):
    record = tmp_path / "recorded.json"
    record.write_text('{"tests": {"tests/x.py::a": 9, "tests/x.py::b": 99}}')
    monkeypatch.setattr(rungs, "RECORDED", record)
    cheap, dear, long = Row("tests/x.py::c"), Row("tests/x.py::a"), Row("tests/x.py::b", "slow")
    judged = Row("tests/x.py::d", "quiet")
    moved = Row("tests/x.py::b")
    rungs.mark([cheap, dear])
    rungs.mark([long, judged])
    rungs.mark([moved])
    assert [set(row.marks) for row in (cheap, dear)] == [set(), {"slow"}]
    assert [set(row.marks) for row in (long, judged)] == [
        {"slow", "slowest"},
        {"slow", "slowest", "quiet"},
    ]
    assert set(moved.marks) == {"slow"}, "what leaves make test by its cost is in CI"


def test_what_the_page_of_guarantees_names_is_there():
    named = rungs.named_by(rungs.PAGE.read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("Makefile", ['-m "not slow"', '-m "not slowest"', "-m quick"]),
        (".ci/run", ['-m "slow and not slowest"']),
    ],
)
def test_runs_select_by_these_marks(path, words):
    if not (ROOT / path).exists():
        pytest.skip("a source distribution has no CI")
    text = (ROOT / path).read_text()
    assert all(word in text for word in words)
    assert set(re.findall(r"-m \"?(?:not )?(\w+)", text)) & {"slow", "slowest"}
