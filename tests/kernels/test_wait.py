"""A rank polls at the same moment as another rank claims a late line, arrives, or ends."""

from typing import NamedTuple

import pytest
from cobre_kernels.collective.comm import COMM, GAVE_UP, LEFT, PRESENT
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import peek_now, poke_now
from cobre_kernels.shm import wait
from cobre_kernels.shm.control import CONTROL, HAS_CLOSED, HAS_FAILED, MEMBER

SIZE, OTHER = 2, 1
STEP = 5
NO_FILE = -1  # no file of locks: all locks count as held


class Claim(NamedTuple):
    told: int
    line: int


class Missing(NamedTuple):
    rank: int
    generation: int


@kernel(COMM, Claim)
def claim_kernel(comm, call):
    return wait._claim(comm, call.told, call.line)


@kernel(COMM, Missing)
def why_missing_kernel(comm, call):
    return wait._why_missing(comm, call.rank, call.generation)


class Rank:
    """Rank 0; its only peer is the test."""

    def __init__(self):
        self.words, self.control = COMM.array(SIZE), CONTROL.array(SIZE)
        self.comm = COMM.of(self.words)
        self.comm.node.control, self.comm.node.liveness_fd = self.control.ctypes.data, NO_FILE

    def run(self, look, call):
        return look.call(self.comm.address, *call)


@pytest.fixture
def rank():
    return Rank()


@pytest.mark.parametrize(
    ("now", "line", "is_first"),
    [(6, 7, True), (7, 7, False), (8, 7, False)],
    ids=["an earlier line", "this line", "a later one"],
)
def test_a_line_that_another_rank_has_told_meanwhile(rank, now, line, is_first):
    poke_now(rank.comm.node.control.late_told, now)
    assert rank.run(claim_kernel, Claim(5, line)) == is_first
    assert peek_now(rank.comm.node.control.late_told) == max(now, line)


@pytest.mark.parametrize(
    ("condition", "arrived", "reason"),
    [
        (MEMBER, STEP - 2, PRESENT),
        (HAS_CLOSED, STEP - 2, LEFT),
        (HAS_FAILED, STEP - 2, GAVE_UP),
        (HAS_CLOSED, STEP, PRESENT),  # the rank arrived at the step, then ended
        (HAS_FAILED, STEP, PRESENT),
    ],
)
def test_a_rank_that_has_come_and_ended_since_the_last_look(rank, condition, arrived, reason):
    block = rank.comm.node.control.blocks[OTHER]
    poke_now(block.condition, condition)
    poke_now(block.cells[STEP & 1].arrived, arrived)
    assert rank.run(why_missing_kernel, Missing(OTHER, STEP)) == reason
