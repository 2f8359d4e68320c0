"""Measures the CPU time that rank 1 spends at a barrier while it waits for rank 0, which is late.

The CPU time is that of rank 1's whole process, in user and kernel mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.plan import PEER, Options
from bench.ranks.njit.calls import our_barrier

LATE, WAITING = 0, 1
AT_ONCE_S = 0.5  # by how much the wait may be longer or shorter than the sleep of rank 0


@dataclass(frozen=True)
class LateRank:
    """A measurement of this program: a caller, and by how much rank 0 is late."""

    caller: str
    late_s: float


def take(world, asked: LateRank, options: Options) -> dict:
    """Return the seconds of the wait and the share of a core used, ours and the library's."""
    with world.communicator("shm") as comm:
        ours = comm.barrier
        if asked.caller == "njit":
            ours = partial(our_barrier, comm, None, None, None, None, 1)
        waits = {"shm": ours, PEER: world.comm.Barrier}
        taken = {name: wait_for_late_rank(w, world.comm, asked.late_s) for name, w in waits.items()}
    told = {
        name: {"value": used_s / waited_s, "unit": "cores", "cpu_s": used_s}
        for name, (waited_s, used_s) in taken.items()
    }
    return {"samples_s": {name: [waited_s] for name, (waited_s, _) in taken.items()}, "told": told}


def wait_for_late_rank(wait: Callable[[], object], world, late_s: float) -> tuple[float, float]:
    """Return the seconds for which rank 1 waited, and the seconds of CPU time that it used."""
    wait()  # compiles, and lets the ranks meet
    if world.rank == LATE:
        time.sleep(late_s)
    used, began = time.process_time(), time.perf_counter()
    wait()
    taken = time.perf_counter() - began, time.process_time() - used
    waited_s, used_s = world.allgather(taken)[WAITING]
    if abs(waited_s - late_s) > AT_ONCE_S + late_s / 10:
        raise AssertionError(f"waited {waited_s:.3f} s for a rank that came {late_s:g} s late")
    return waited_s, used_s
