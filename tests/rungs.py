"""Which tests a run has: the one rule for `make quick`, `make test`, CI and `make test-all`.

========== =============== =======================================================================
a test is  it is in        if
========== =============== =======================================================================
quick      all runs        it has the mark: what breaks most often
usual      `make test`     it costs at most `USUAL_S`, and no other test has the same values in
                           other combinations; or it keeps a promise of docs/guarantees.md
slow       CI              it is neither, or has the mark
slowest    `make test-all` it has the mark quiet; or it has the mark slow, and is of `SLOWEST` or
                           costs more than `CI_S`
========== =============== =======================================================================

The seconds are those that `make test-costs` has recorded (`tests/costs/recorded.json`), of all
processes that worked for the test, without what it does for later tests too. A test that is not
recorded yet costs nothing. So a test that becomes expensive leaves `make test` by itself, and no
test is lost. A test that keeps a promise is in `make test` with its cheapest row on each kind of
backend, whatever that row costs.

The table of cases has a choice of its own (`cobre_comm/testing/suite/part.py`): usual are each
value of each case, and pairs of case, caller and way; slow all pairs; slowest all triples.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from cobre_comm.testing.pairwise import choose

USUAL_S = 0.6  # seconds of CPU of a usual test
COMBINED_S = 0.1  # of a combination of values that other tests have
CI_S = 6.0  # of a test of CI
# What needs a bare machine or long preparations, or of which CI has rows enough.
SLOWEST = re.compile(
    r"tests/(campaign|places|faults/mpi)/|pairs_leave_nothing|killed_training|longer_case"
    r"|fault_of_the_package|quick_run_finds|test_surroundings"
    r"|(fault_is_found|the_others_pass).(?!reverse-fold|no-fence|one-sided-error)"
    r"|\[.*mpi-"
)
ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "costs" / "recorded.json"
PAGE = ROOT / "docs" / "guarantees.md"
TABLE = "tests/conformance/test_table.py"
BACKEND = re.compile(r"\b(local|shm|tcp|mpi)\b")


def mark(items):
    """Give tests the marks slow and slowest, by which `-m` then selects."""
    costs = recorded_costs()
    promises = named_by(PAGE.read_text())
    rows = defaultdict(list)
    for item in items:
        if not item.nodeid.startswith(TABLE):
            rows[item.nodeid.partition("[")[0]].append(item)
    for name, tests in rows.items():
        usual = usual_of(tests, costs, name.startswith(promises))
        for item in tests:
            was_slow, is_quiet = map(item.get_closest_marker, ("slow", "quiet"))
            if item not in usual:
                item.add_marker(pytest.mark.slow)
            cost = costs.get(in_any_folder(item.nodeid), 0.0)
            is_long = cost > CI_S or SLOWEST.search(item.nodeid)
            if is_quiet or (was_slow and is_long):
                item.add_marker(pytest.mark.slowest)


def recorded_costs():
    """Return what each test costs by itself, in seconds of CPU."""
    return json.loads(RECORDED.read_text())["tests"] if RECORDED.exists() else {}


def in_any_folder(nodeid):
    """Return the name of a test without the folder of this checkout."""
    return nodeid.replace(str(ROOT), "")


def usual_of(tests, costs, keeps_promise):
    """Return those rows of one test that are usual."""
    short = [item for item in tests if not any(map(item.get_closest_marker, ("slow", "quiet")))]

    def cost(item):
        return costs.get(in_any_folder(item.nodeid), 0.0)

    quick = [item for item in short if item.get_closest_marker("quick")]
    cheap = [item for item in short if cost(item) <= USUAL_S]
    alone = [cheap[number] for number in choose([values(item) for item in cheap], 1)]
    usual = {*quick, *alone, *(item for item in cheap if cost(item) <= COMBINED_S)}
    if keeps_promise:
        kinds = defaultdict(list)
        for item in short:
            kinds[kind(item)].append(item)
        usual.update(min(each, key=cost) for each in kinds.values())
    return usual


def values(item):
    """Return the value of each parameter of a test."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return {name: repr(value) for name, value in params.items()}


def kind(item):
    """Return the kind of backend in the name of a test, or nothing."""
    found = BACKEND.findall(item.nodeid.partition("[")[2])
    return found[0] if found else ""


def named_by(page):
    """Return the files and folders of tests that a page names."""
    return tuple(re.findall(r"`(tests/[\w/]+(?:\.py|/))`", page))
