"""Which way large calls take on this machine: a fact that is measured, and no promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from cobre_kernels.shm.ways import MOST_TRIED

from cobre_comm.check.result import TIMEOUT_S
from cobre_comm.journal.stats import SLOTS_ONLY, Stats, WayStats
from cobre_comm.journal.texts import power_text, seconds_text
from cobre_comm.testing.ranks.pool import RankPool

if TYPE_CHECKING:
    from cobre_comm.contract.communicator import Communicator

NBYTES = 8 * 2**20
RECEIVED_BYTES = 2**29  # what all ranks together may receive in an allgatherv


def find_ways(pool: RankPool) -> Stats:
    """Return rank 0's statistics after large calls; check that all ranks take the same ways."""
    found: list[Stats] = pool.run(make_large_calls, fresh=True, timeout_s=TIMEOUT_S)
    assert all(stats.ways == found[0].ways for stats in found), found
    return found[0]


def make_large_calls(comm: Communicator) -> Stats:
    """Broadcast and allgather often enough that the fastest way of each is found."""
    values = np.ones(NBYTES, dtype=np.uint8)
    for _ in range(MOST_TRIED):
        comm.broadcast(values)
    block = values[: RECEIVED_BYTES // comm.size**2]
    everything = np.empty(block.size * comm.size, dtype=np.uint8)
    for _ in range(MOST_TRIED):
        comm.allgather(block, everything)
    return comm.stats()


def as_data(stats: Stats) -> dict[str, Any]:
    """Return the ways of large calls as values that JSON can hold."""
    return {"slots_only": stats.slots_only, "ways": [each._asdict() for each in stats.ways]}


def as_lines(stats: Stats) -> list[str]:
    """Return the ways of large calls, as a line for each operation."""
    return [*map(_line, stats.ways), *[SLOTS_ONLY] * stats.slots_only]


def _line(each: WayStats) -> str:
    times = ", ".join(f"{name} {seconds_text(time)}" for name, time in each.seconds.items())
    return (
        f"{each.operation} of {power_text(each.least_bytes)}: {each.way} is the fastest ({times})"
    )
