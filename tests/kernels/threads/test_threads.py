"""The stated orderings leave no race, and each word has only its stated writers.

docs/design/memory-orderings.md says what this check leaves out.
"""

import json

import pytest
from cobre_kernels.shm.control import CONTROL, RANK_BLOCK

from tests.kernels import programs
from tests.kernels.shared_words import WORDS

STATED = {(word, *operation) for word in WORDS for operation in WORDS[word]}
DATA = {("data", what, how) for what in ("load", "store") for how in ("plain", "copy")}
# Words outside the watched memory.
UNSEEN = (
    "Comm.guard",
    "Reading.mark",
    "StopFlag.requested",
    "Pulse.beats",
    "Word.value",
    "Region.number",
    "Region.begin",
    "Region.end",
    "RegionState.closed",
    "Progress.magic",
    "Progress.pid",
    "Progress.begun",
    "Progress.named",
    "Report.number",
    "Report.noted_ns",
    "Quantity.bits",
    "Work.round",
    "Work.ended",
    "Regions.used",
    *(
        word
        for word in WORDS
        if word.startswith(("Journal", "NotedCall", "Operation", "Phase", "Letters", "Raised"))
    ),
)
# For each mistake, a part of the report that must be there: a race, or an unstated operation.
PLANTED = {
    "relaxed store of arrived": "not ordered after the store",
    "releasing store of arrived": "Cell.arrived store release",
    "plain store of arrived": "both atomic and plain",
    "relaxed load of arrived": "not ordered after the store",
    "plain load of arrived": "both atomic and plain",
    "acquiring load of sleepers": "RankBlock.sleepers load acquire",
    "relaxed store of condition": "RankBlock.condition store monotonic",
    "no fence after streamed stores": "not ordered after the store",
    "one slot for both parities": "not ordered after",
    "one half of the staging buffer": "not ordered after",
    "no last step where outputs meet": "not ordered after",
    "no last step of a gatherv into a region": "not ordered after",
    "a claim by a load and a store": "Claims.made load monotonic",
    "one place for the halves of both parities": "not ordered after",
    "no wait for writers": "not ordered after the store",
    "acquiring load of writing": "RankBlock.writing load acquire",
    "no last step after reads": "not ordered after",
    "no barrier in a reset": "not ordered after",
}


def reports(*arguments):
    return json.loads(programs.output_of("threads.trace", *arguments, NUMBA_DISABLE_JIT="1"))


@pytest.fixture(scope="module")
def scenarios():
    return reports()


@pytest.fixture(scope="module")
def planted():
    return reports("planted")


def operations(report):
    return {tuple(operation) for operation in report["operations"]}


def test_orderings_leave_no_race(scenarios):
    races = {name: report["races"] for name, report in scenarios.items()}
    assert races == {name: [] for name in scenarios}


def test_words_see_only_what_is_stated(scenarios):
    unstated = {name: operations(report) - STATED - DATA for name, report in scenarios.items()}
    assert unstated == {name: set() for name in scenarios}


def test_scenarios_take_every_path(scenarios):
    taken = set().union(*map(operations, scenarios.values()))
    missing = {o for o in STATED - taken if o[0] not in UNSEEN}
    # There is one node, so the last rank to arrive is never on another node.
    assert missing == {("Cell.arrived", "call", "syscall"), ("Staging.last", "load", "monotonic")}


def is_stated(word, offset, writers):
    owner = (offset - CONTROL.offsets["blocks"]) // RANK_BLOCK.size_bytes
    if word.startswith("Staging."):
        return writers == [0]
    if word in ("Control.late_told", "Claims.made"):
        return True
    if word == "RankBlock.sleepers":
        return owner not in writers
    return writers == [owner]  # the rank to which the block, cell or payload belongs


def test_words_have_the_writers_that_are_stated(scenarios):
    unstated = {n: [w for w in r["writers"] if not is_stated(*w)] for n, r in scenarios.items()}
    assert unstated == {name: [] for name in scenarios}


@pytest.mark.slow  # all mistakes are planted before one is judged
@pytest.mark.parametrize("mistake", PLANTED)
def test_mistake_is_found_by_the_orderings_alone(planted, mistake):
    report = planted[mistake]
    unstated = [" ".join(operation) for operation in operations(report) - STATED - DATA]
    assert PLANTED[mistake] in "\n".join([*report["races"], *unstated])


@pytest.mark.slow
def test_every_mistake_is_looked_for(planted):
    assert set(planted) == set(PLANTED)
