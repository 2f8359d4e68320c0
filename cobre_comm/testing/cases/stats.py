"""Statistics: every call is counted, and the rank that came last is known."""

import pathlib
import time

import numpy as np

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import QUICK, Case
from cobre_comm.testing.cases.waiting import wait_until

LENGTH = 4
AWAITED = 5  # the allreduces in which one rank comes last
PAUSE_S = 0.02
CALLS = {"barrier": 3, "broadcast": 2, "allreduce": AWAITED + 1, "allgatherv": 1, "exact_sum": 1}
NBYTES = {"barrier": 0, "broadcast": 16 * LENGTH, "allreduce": 8 * LENGTH * (AWAITED + 1)}


def known_calls(comm, caller, late, folder):
    """Make the calls of CALLS; one rank comes last to each allreduce but the first allreduce."""
    collectives, values, result = calls(caller, comm.rank), np.ones(LENGTH), np.zeros(LENGTH)
    everything, counts = np.zeros(LENGTH * comm.size), [LENGTH] * comm.size
    displs = [LENGTH * rank for rank in range(comm.size)]
    for _ in range(CALLS["barrier"]):
        collectives.barrier(comm)
    for _ in range(CALLS["broadcast"]):
        collectives.broadcast(comm, values)
    collectives.allgatherv(comm, values, everything, counts, displs)
    assert collectives.exact_sum(comm, values) == LENGTH * comm.size
    collectives.allreduce(comm, values, result)
    for number in range(AWAITED):
        come(comm, late % comm.size, pathlib.Path(folder) / str(number))
        collectives.allreduce(comm, values, result)
    return comm.stats()


def come(comm, late, place):
    """Hold rank ``late`` back until all others are here, and for a pause in which they go ahead."""
    place.mkdir(exist_ok=True)
    if comm.rank != late:
        (place / str(comm.rank)).touch()
        return
    wait_until(lambda: len(list(place.iterdir())) == comm.size - 1)
    time.sleep(PAUSE_S)


def all_is_counted(ran):
    late = ran.cell.arguments[0] % ran.size
    is_no_op = BackendName.parse(ran.backend).kind == "local" and ran.cell.caller == "njit"
    for rank, stats in enumerate(ran.values):
        assert (stats.rank, stats.size) == (rank, ran.size)
        if is_no_op:  # compiled code has dropped barrier, broadcast and allreduce
            assert stats["exact_sum"].calls == CALLS["exact_sum"]
            continue
        assert {name: s.calls for name, s in stats.operations.items()} == CALLS
        assert {name: stats[name].nbytes for name in NBYTES} == NBYTES
        reduced = stats["allreduce"]
        assert sum(reduced.came_last.values()) == reduced.waited_calls <= reduced.calls
        if rank == late:
            assert reduced.waited_calls <= 1, stats
        else:
            assert reduced.came_last[late] >= AWAITED, stats
            assert AWAITED * PAUSE_S / 2 < reduced.waited_for_s[late] <= reduced.waiting_s + 1e-6
            assert f"rank {late} was waited for in " in repr(stats)


CASES = [
    Case(
        "who_came_last", known_calls, {"late": [0, -1]}, expect=all_is_counted, fresh=True,
        folder=True, check=QUICK, tries=3,
    ),
]  # fmt: skip
