"""The orderings that are stated leave no race, and words have the writers that are stated.

docs/design/memory-orderings.md says what is checked here, and what is not.
"""

import json

import pytest
from cobre_kernels.shm.control import CONTROL, RANK_BLOCK

from tests.kernels import programs
from tests.kernels.shared_words import WORDS

FAILURES = ("disagreement", "left", "late", "node disagreement", "node disagreement left")
SCENARIOS = (
    "barriers",
    "broadcasts",
    "allreduces",
    "allgathervs",
    "mixed",
    "regions",
    "rounds",
    *FAILURES,
)
STATED = {(word, *operation) for word in WORDS for operation in WORDS[word]}
DATA = {("data", what, how) for what in ("load", "store") for how in ("plain", "copy")}
# Not in the memory that is watched.
UNSEEN = (
    "Comm.guard",
    "StopFlag.requested",
    "Pulse.beats",
    "Word.value",
    "Region.number",
    "Region.begin",
    "Region.end",
    "Regions.used",
    "Regions.unlisted",
    *(word for word in WORDS if word.startswith(("Journal", "NotedCall", "Operation", "Job"))),
)
# What is said of each: a race, or an operation that is not stated.
PLANTED = {
    "relaxed store of arrived": "not ordered after the store",
    "releasing store of arrived": "Cell.arrived store release",
    "plain store of arrived": "both atomic and plain",
    "relaxed load of arrived": "not ordered after the store",
    "plain load of arrived": "both atomic and plain",
    "acquiring load of sleepers": "RankBlock.sleepers load acquire",
    "relaxed store of condition": "RankBlock.condition store monotonic",
    "no fence after streamed stores": "released before the fence",
    "one slot for both parities": "not ordered after",
    "one half of the staging buffer": "not ordered after",
}


@pytest.fixture(scope="module")
def trace():
    process = programs.start("threads.trace", NUMBA_DISABLE_JIT="1")
    return json.loads(programs.output_of(process))


def operations(report):
    return {tuple(operation) for operation in report["operations"]}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_orderings_leave_no_race(trace, scenario):
    assert trace[scenario]["races"] == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_words_see_only_what_is_stated(trace, scenario):
    assert operations(trace[scenario]) <= STATED | DATA


def test_scenarios_take_every_path(trace):
    taken = set().union(*(operations(trace[scenario]) for scenario in SCENARIOS))
    missing = {o for o in STATED - taken if o[0] not in UNSEEN}
    # The node is alone: no rank of another one comes last.
    assert missing == {("Cell.arrived", "call", "syscall"), ("Staging.last", "load", "monotonic")}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_words_have_the_writers_that_are_stated(trace, scenario):
    for word, offset, writers in trace[scenario]["writers"]:
        owner = (offset - CONTROL.offsets["blocks"]) // RANK_BLOCK.size_bytes
        if word.startswith("Staging."):
            assert writers == [0], word
        elif word == "RankBlock.sleepers":
            assert owner not in writers
        else:  # of a block or cell, or payload
            assert writers == [owner], word


@pytest.mark.parametrize("mistake", PLANTED)
def test_mistake_is_found_by_the_orderings_alone(trace, mistake):
    report = trace["planted"][mistake]
    unstated = [" ".join(operation) for operation in operations(report) - STATED - DATA]
    assert PLANTED[mistake] in "\n".join([*report["races"], *unstated])


def test_every_mistake_is_looked_for(trace):
    assert set(trace["planted"]) == set(PLANTED)
