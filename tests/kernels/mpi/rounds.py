"""How a round ends on a node, and how a collective ends if a call of MPI fails."""

import threading

import numpy as np
import pytest
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import (
    BARRIER,
    Allgatherv,
    Allreduce,
    Barrier,
    BodyStatus,
    Broadcast,
    Gatherv,
)
from cobre_kernels.collective.comm import COMM, FORKED, GAVE_UP, LATE, PRESENT
from cobre_kernels.collective.reduction.fold import MAX, fold_kernel
from cobre_kernels.collective.status import (
    INTERRUPTED,
    IS_FORKED,
    LOST_PEER,
    MPI_FAILED,
    OK,
    TIMED_OUT,
    USE_SLOTS,
)
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import peek_now, poke_now
from cobre_kernels.nodes import allgatherv, allreduce, barrier, broadcast, gatherv
from cobre_kernels.nodes.messages import REPORT
from cobre_kernels.nodes.outcome import PULSE_NS, hand_out_kernel
from cobre_kernels.nodes.outputs import LONG_BYTES, see_outputs
from cobre_kernels.nodes.protocol import OUTSIDE
from cobre_kernels.shm.control import HAS_FAILED, IN_REGION, MEMBER
from cobre_kernels.shm.region import APART, PRIVATE

from tests.kernels.mpi.library import MPI_ERROR, OWN, Leader

TWO_HERE = (0, 0, 2)
FOLLOWER = 1
HALF_BYTES = 2**17
COUNT = 3000  # elements of each rank: too many to travel with the headers


def hand_out(rank, status):
    return hand_out_kernel.call(rank.comm.address, *BodyStatus(status))


def arrive(rank, other):
    """Let another rank of the node enter its first step."""
    poke_now(rank.node.control.blocks[other].cells[1].arrived, 1)


# Tests of the ranks of one node.


@pytest.mark.parametrize(("status", "told"), [(INTERRUPTED, [REPORT]), (IS_FORKED, [])])
def test_a_leader_that_a_handler_ends_enters_no_step(mpi, status, told):
    rank = Leader(TWO_HERE)
    if status == IS_FORKED:
        poke_now(rank.comm.guard, FORKED)
    assert hand_out(rank, status) == status
    assert rank.node.generation == 0
    assert mpi.sent == told


@pytest.mark.parametrize(
    ("condition", "status", "outcome", "shown", "reason"),
    [
        (MEMBER, OK, TIMED_OUT, TIMED_OUT, LATE),
        (MEMBER, LOST_PEER, TIMED_OUT, LOST_PEER, LATE),
        (HAS_FAILED, OK, LOST_PEER, OK, GAVE_UP),
    ],
)
def test_a_follower_that_does_not_fetch(mpi, condition, status, outcome, shown, reason):
    """If the round had failed before, the leader shows that failure; other nodes get one report."""
    rank = Leader(TWO_HERE)
    rank.comm.timeout_ns = 1
    poke_now(rank.node.control.blocks[FOLLOWER].condition, condition)
    assert hand_out(rank, status) == outcome
    assert peek_now(rank.nodes.of_lane[0].staging.status) == shown
    assert rank.reasons() == [PRESENT, reason, PRESENT]
    assert mpi.sent == [REPORT]


@pytest.mark.parametrize(
    ("late", "outcome", "reasons", "told"),
    [
        (2, TIMED_OUT, [PRESENT, PRESENT, LATE], []),
        # the leader has shown that this follower is late
        (FOLLOWER, LOST_PEER, [GAVE_UP, PRESENT, PRESENT], []),
        (None, LOST_PEER, [GAVE_UP, PRESENT, PRESENT], [REPORT]),
    ],
)
def test_a_follower_whose_leader_has_gone(mpi, late, outcome, reasons, told):
    """The follower takes the outcome that its leader has shown, or reports if there is none."""
    rank = Leader(TWO_HERE, FOLLOWER)
    if late is not None:
        rank.nodes.of_lane[0].staging.failures[late].reason = LATE
        poke_now(rank.nodes.of_lane[0].staging.status, TIMED_OUT)
    poke_now(rank.node.control.blocks[0].condition, HAS_FAILED)
    assert hand_out(rank, OK) == outcome
    assert rank.reasons() == reasons
    assert mpi.sent == told


def test_without_a_timeout_a_follower_waits_for_its_leader(mpi):
    rank = Leader(TWO_HERE, FOLLOWER)
    threading.Timer(1.6 * PULSE_NS / 1e9, arrive, (rank, 0)).start()
    assert hand_out(rank, OK) == OK


@kernel(COMM, BodyStatus)
def see_kernel(comm, call):
    return see_outputs(comm, call.status)


@pytest.mark.parametrize(
    ("writes", "size_bytes", "naps"),
    [(0, LONG_BYTES, 1), (0, LONG_BYTES - 1, 0), (1, LONG_BYTES, 0)],
)
def test_who_waits_for_a_long_copy_does_not_yield(mpi, writes, size_bytes, naps):
    rank = Leader(TWO_HERE)
    rank.nodes.writes, rank.nodes.output_bytes = writes, size_bytes
    assert see_kernel.call(rank.comm.address, *BodyStatus(OK)) == OK
    assert rank.comm.wait.naps == naps


@pytest.mark.parametrize(
    ("status", "outcome", "outputs"),
    [(OK, OK, APART), (USE_SLOTS, OK, APART), (LOST_PEER, LOST_PEER, PRIVATE)],
)
def test_outputs_are_seen_where_all_ranks_of_the_node_are_in(mpi, status, outcome, outputs):
    rank = Leader(TWO_HERE)
    rank.nodes.output_mark = IN_REGION
    assert see_kernel.call(rank.comm.address, *BodyStatus(status)) == outcome
    assert rank.nodes.outputs == outputs
    assert rank.nodes.output_mark == 0


# Tests of calls of MPI that fail.

SEND, RECV, SENDS = np.arange(COUNT * 1.0), np.zeros(2 * COUNT), np.zeros(2, np.int64)
COUNTS, DISPLS = np.full(2, COUNT), np.array([0, COUNT])
_ALL = (
    SEND.ctypes.data, COUNT, RECV.ctypes.data, 2 * COUNT, 8, dtypes.FLOAT64,
    COUNTS.ctypes.data, DISPLS.ctypes.data, 2, 2,
)  # fmt: skip
# For each collective: its body, its call, and the functions of MPI that the body calls.
HEADERS, MOVES = ["MPI_Iallgather"], ["MPI_Iallgather", "MPI_Iallgather"]
COLLECTIVES = {
    "allgatherv": (allgatherv.allgatherv_body, Allgatherv(*_ALL), [*MOVES, "MPI_Iallgatherv"]),
    "allreduce": (
        allreduce.allreduce_body,
        Allreduce(SEND.ctypes.data, COUNT, RECV.ctypes.data, COUNT, 8, dtypes.FLOAT64, MAX),
        [*MOVES, "MPI_Ialltoallv", "MPI_Iallgatherv"],
    ),
    "barrier": (barrier.barrier_body, Barrier(BARRIER, 0), HEADERS),
    "broadcast": (
        broadcast.broadcast_body,
        Broadcast(SEND.ctypes.data, SEND.nbytes, dtypes.FLOAT64, OWN),
        [*MOVES, "MPI_Ibcast"],
    ),
    "gatherv": (
        gatherv.gatherv_body, Gatherv(*_ALL, OWN), [*HEADERS, *MOVES, "MPI_Ialltoallv"],
    ),
}  # fmt: skip
FAILING = [
    (name, number)
    for name, (*_, called) in COLLECTIVES.items()
    for number in range(len(called) + 1)
]


@pytest.mark.parametrize(("name", "failing"), FAILING)
def test_what_fails_ends_the_collective(leader, mpi, name, failing):
    """The collective begins nothing more, and sends a report. If ``failing`` is 0, all succeeds."""
    comm, nodes = leader.comm, leader.nodes
    body, call, called = COLLECTIVES[name]
    nodes.state, nodes.half_bytes = OUTSIDE, HALF_BYTES
    nodes.halves = leader.memory.room(2 * HALF_BYTES)
    comm.fold_kernel, comm.sends = fold_kernel.address, SENDS.ctypes.data
    comm.compared = SEND.nbytes
    mpi.failing = failing
    assert body.call(comm.address, *call) == (MPI_FAILED if failing else OK)
    assert [begun for begun, _ in mpi.begun] == called[: failing or len(called)]
    assert comm.mpi_error == (MPI_ERROR if failing else 0)
    assert mpi.sent == ([REPORT] if failing else [])
    assert nodes.state == OUTSIDE
