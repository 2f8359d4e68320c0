"""Blocks of calls in turn, timed on the slowest rank; and what passed a network interface."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from tcp_cases import Case, Work

MOST_TURNS = 5000
CALIBRATIONS = 5


def interface_bytes(name: str) -> tuple[int, int]:
    """Return the bytes (received, sent) by an interface of this process's network namespace."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        interface, _, numbers = line.partition(":")
        if interface.strip() == name:
            fields = numbers.split()
            return int(fields[0]), int(fields[8])
    raise ValueError(f"no interface {name}")


def timed(calls: list[Callable[[], object]]) -> float:
    """Seconds that the calls take here."""
    began = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - began


def measure(
    case: Case,
    sides: dict,
    rank: int,
    size: int,
    slowest: Callable[[float], float],
    rounds: int,
    block_s: float,
) -> dict[str, list[float]]:
    """Return the seconds per turn of every block, by side; the results are verified.

    The sides take turns block by block, each first in every other round. All ranks meet before a
    block, and its time is that of the slowest rank.

    Parameters
    ----------
    case : Case
        What to call.
    sides : dict
        By name, what :class:`~tcp_cases.Work` needs.
    rank, size : int
        This rank, and the number of ranks.
    slowest : callable
        The largest of a number on all ranks; it also makes the ranks meet.
    rounds : int
        Number of blocks of each side.
    block_s : float
        About how long a block is.
    """
    works = {name: Work(case, side, rank, size) for name, side in sides.items()}
    turns = {name: _turns(work, slowest, block_s) for name, work in works.items()}
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            calls = works[name].next_calls(turns[name])
            slowest(0.0)
            samples[name].append(slowest(timed(calls)) / turns[name])
    for work in works.values():
        work.verify()
    return samples


def _turns(work: Work, slowest: Callable[[float], float], block_s: float) -> int:
    """Use every slot once, to warm it; then see how many turns fill a block, at their best."""
    slowest(timed(work.next_calls(work.slots)))
    best, turns = math.inf, 1
    for _ in range(CALIBRATIONS):
        best = min(best, slowest(timed(work.next_calls(turns))) / turns)
        turns = max(1, min(round(block_s / best / 4), MOST_TURNS))
    return max(1, min(round(block_s / best), MOST_TURNS))


def interface_load(
    case: Case,
    side: object,
    rank: int,
    size: int,
    slowest: Callable[[float], float],
    interface: str,
) -> float:
    """Return the bytes that one call moves through an interface, in its busier direction.

    Where the ranks have interfaces of their own it is the busiest one's.
    """
    work = Work(case, side, rank, size)
    slowest(timed(work.next_calls(1)))
    before = interface_bytes(interface)
    slowest(timed(work.next_calls(1)))
    after = interface_bytes(interface)
    return slowest(max(b - a for a, b in zip(before, after, strict=True)))


def ratio(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Median and quartiles of the ratios of neighbouring blocks."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"ratio": middle, "ratio_low": low, "ratio_high": high}
