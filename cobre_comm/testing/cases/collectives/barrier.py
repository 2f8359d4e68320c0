"""barrier: no rank returns before all have entered."""

import pathlib
import time

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case


def barrier_orders_writes(comm, caller, rounds, folder):
    """Ranks write to a mapped file before the barrier, and read it after."""
    path = pathlib.Path(folder) / "words"
    if comm.rank == 0:
        path.write_bytes(bytes(8 * comm.size))
    comm.barrier()
    words = np.memmap(path, np.int64, "r+", shape=comm.size)
    barrier = calls(caller, comm.rank).barrier
    for number in range(1, rounds + 1):
        words[comm.rank] = 1000 * number + comm.rank
        barrier(comm)
        assert words.tolist() == [1000 * number + r for r in range(comm.size)]
        barrier(comm)


def three_barriers(comm, caller):
    for _ in range(3):
        calls(caller, comm.rank).barrier(comm)


def late_rank_delays_all(comm, caller, late, pause_s):
    """One rank comes late; return the times at which this rank entered and left."""
    barrier = calls(caller, comm.rank).barrier
    barrier(comm)
    if comm.rank == late % comm.size:
        time.sleep(pause_s)
    entered = time.monotonic()
    barrier(comm)
    return entered, time.monotonic()


def nobody_left_early(ran):
    """No rank left before the last rank entered, by the clock that all ranks read."""
    last = max(entered for entered, _ in ran.values)
    early = [rank for rank, (_, left) in enumerate(ran.values) if left < last]
    assert not early, f"ranks {early} returned before the last rank had entered"


CASES = [
    Case("three_in_a_row", three_barriers, callers=EVERY, check=QUICK),
    Case(
        "write_before_read_after", barrier_orders_writes, {"rounds": [200]}, folder=True,
        check=QUICK,
    ),
    Case(
        "late_rank_delays_all", late_rank_delays_all, {"late": [0, -1], "pause_s": [0.1]},
        expect=nobody_left_early, check=QUICK,
    ),
]  # fmt: skip
