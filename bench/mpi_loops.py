"""Loops of calls inside @njit, in turn, timed on the slowest rank."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

MOST_CALLS = 100_000
FEWEST_CALLS = 2
CALIBRATIONS = 6

Loop = Callable[[int], int | None]  # makes so many calls; returns an error code that must be 0


def timed(loop: Loop, calls: int) -> float:
    began = time.perf_counter()
    code = loop(calls)
    seconds = time.perf_counter() - began
    if code:
        raise RuntimeError(f"MPI returned the error code {code}")
    return seconds


def measure_loops(
    loops: dict[str, Loop], slowest: Callable[[float], float], rounds: int, block_s: float
) -> dict[str, list[float]]:
    """Return the seconds per call of every block, by name.

    The loops take turns block by block, each first in every other round. All ranks meet before a
    block, and its time is that of the slowest rank.

    Parameters
    ----------
    loops : dict
        By name, what to time; the first calls compile it.
    slowest : callable
        The largest of a number on all ranks; it also makes the ranks meet.
    rounds : int
        Number of blocks of each loop.
    block_s : float
        About how long a block is.
    """
    calls = {name: _calls(loop, slowest, block_s) for name, loop in loops.items()}
    samples: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(rounds):
        for name in list(loops)[:: 1 if turn % 2 == 0 else -1]:
            slowest(0.0)
            samples[name].append(slowest(timed(loops[name], calls[name])) / calls[name])
    return samples


def _calls(loop: Loop, slowest: Callable[[float], float], block_s: float) -> int:
    """Warm up; then see how many calls fill a block, at their best."""
    slowest(timed(loop, FEWEST_CALLS))
    best, calls = math.inf, FEWEST_CALLS
    for _ in range(CALIBRATIONS):
        best = min(best, slowest(timed(loop, calls)) / calls)
        calls = max(FEWEST_CALLS, min(round(block_s / best / 4), MOST_CALLS))
    return max(FEWEST_CALLS, min(round(block_s / best), MOST_CALLS))
