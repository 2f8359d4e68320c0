"""Which tests a run has: the one rule for `make quick`, `make test`, CI and `make test-all`.

========== =============== =======================================================================
a test is  it is in        if
========== =============== =======================================================================
quick      all runs        it has the mark quick: it tries what breaks most often
usual      `make test`     it costs at most `COMBINED_S`; or at most `USUAL_S`, and it is one of the
                           few rows of its test in which every value of a parameter occurs; or it
                           keeps a promise of docs/guarantees.md, and costs at most `PROMISE_S`
slow       CI              it is neither quick nor usual, or has the mark slow
slowest    `make test-all` it has the mark quiet; or it has the mark slow, and is of `SLOWEST`, or
                           costs more than `CI_S` and is not of `SHIPPED`
========== =============== =======================================================================

A cost is the CPU seconds of all processes that worked for the test, as `make test-costs` has
recorded them (`tests/costs/recorded.json`). Work that serves later tests too is left out. A test
that is not recorded counts as if it cost nothing. A test that becomes expensive leaves `make test`
after the next recording, and CI or `make test-all` still runs it. A test that keeps a promise is in
`make test` with its cheapest row on each kind of backend. Where all tests of a promise cost more
than `PROMISE_S` on a kind of backend, the cheapest of them is in `make test`, whatever it costs.

The table of cases has a choice of its own (`cobre_comm/testing/suite/part.py`). `make test` has
each value of each case, and pairs of case, caller and way; CI has all pairs, and `make test-all`
all triples.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from cobre_comm.testing.pairwise import choose

USUAL_S = 0.6  # seconds of CPU that a usual test may cost
PROMISE_S = 2.0  # seconds of CPU of a test that keeps a promise
COMBINED_S = 0.1  # seconds of CPU of a row, if all its values occur in other rows too
CI_S = 6.0  # the most seconds of CPU of a test in CI
# Tests that need a bare machine or long preparations, and rows that CI does not need.
SLOWEST = re.compile(
    r"tests/(campaign|places|faults/mpi)/|pairs_leave_nothing|killed_training|longer_case"
    r"|test_surroundings"
    r"|(fault_is_found|the_others_pass).(?!reverse-fold|no-fence|one-sided-error)"
    r"|found_where_it_is.(?!block-copied|item-lost)"
    r"|\[.*mpi-"
)
SHIPPED = ("tests/packaging/", "tests/documents/")  # CI has these tests, whatever they cost
ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "costs" / "recorded.json"
PAGE = ROOT / "docs" / "guarantees.md"
TABLE = "tests/conformance/test_table.py"
BACKEND = re.compile(r"\b(local|shm|tcp|mpi)\b")


def mark(items):
    """Give tests the marks slow and slowest, by which `-m` selects tests afterwards."""
    costs, rows = recorded_costs(), defaultdict(list)

    def cost(item):
        return costs.get(in_any_folder(item.nodeid), 0.0)

    for item in items:
        if not item.nodeid.startswith(TABLE):
            rows[item.nodeid.partition("[")[0]].append(item)
    usual = {item for tests in rows.values() for item in usual_of(tests, cost)}
    for promise in named_by(PAGE.read_text()):
        theirs = [item for name in rows if name.startswith(promise) for item in rows[name]]
        usual |= kept_of(theirs, cost, usual)
    for tests in rows.values():
        for item in tests:
            was_slow, is_quiet = map(item.get_closest_marker, ("slow", "quiet"))
            if item not in usual:
                item.add_marker(pytest.mark.slow)
            is_costly = cost(item) > CI_S and not item.nodeid.startswith(SHIPPED)
            is_long = is_costly or SLOWEST.search(item.nodeid)
            if is_quiet or (was_slow and is_long):
                item.add_marker(pytest.mark.slowest)


def recorded_costs():
    """Return what each test costs by itself, in seconds of CPU."""
    return json.loads(RECORDED.read_text())["tests"] if RECORDED.exists() else {}


def in_any_folder(nodeid):
    """Return the name of a test without the folder of this checkout."""
    return nodeid.replace(str(ROOT), "")


def usual_of(tests, cost):
    """Return the rows of one test that are usual, without regard to promises."""
    short = [item for item in tests if is_short(item)]
    quick = [item for item in short if item.get_closest_marker("quick")]
    cheap = [item for item in short if cost(item) <= USUAL_S]
    alone = [cheap[number] for number in choose([values(item) for item in cheap], 1)]
    return {*quick, *alone, *(item for item in cheap if cost(item) <= COMBINED_S)}


def kept_of(tests, cost, usual):
    """Return those tests of a promise that are usual because of the promise."""
    rows, kinds = defaultdict(list), defaultdict(list)
    for item in filter(is_short, tests):
        rows[item.nodeid.partition("[")[0], kind(item)].append(item)
        kinds[kind(item)].append(item)
    cheapest = [min(each, key=cost) for each in rows.values()]
    kept = {item for item in cheapest if cost(item) <= PROMISE_S}
    missing = [each for each in kinds.values() if not {*each} & (usual | kept)]
    return kept | {min(each, key=cost) for each in missing}


def is_short(item):
    """Tell whether a test has neither of the marks that keep a test from `make test`."""
    return not any(map(item.get_closest_marker, ("slow", "quiet")))


def values(item):
    """Return the value of each parameter of a test."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return {name: repr(value) for name, value in params.items()}


def kind(item):
    """Return the kind of backend in the name of a test, or "" if there is none."""
    found = BACKEND.findall(item.nodeid.partition("[")[2])
    return found[0] if found else ""


def named_by(page):
    """Return the files and folders of tests that a page names."""
    return tuple(re.findall(r"`(tests/[\w/]+(?:\.py|/))`", page))
