"""Blocks of calls in turn, timed on the slowest rank; and what passed a network interface."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tcp_cases import Case, Work

MOST_TURNS = 5000
CALIBRATIONS = 5
FEWEST_ROUNDS = 3
FAR_LONGER = 20  # a turn than a block, though the first one finds cold pages


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


def single_calls(calls: list[Callable[[], object]]) -> np.ndarray:
    """Seconds of each call here; reading the clock, some 50 ns, is in each."""
    taken = np.empty(len(calls))
    for index, call in enumerate(calls):
        began = time.perf_counter()
        call()
        taken[index] = time.perf_counter() - began
    return taken


@dataclass(frozen=True)
class Blocks:
    """Seconds per turn of every block, and turns of a block, by name."""

    samples: dict[str, list[float]]
    turns: dict[str, int]


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
    blocks = measure_blocks(works, slowest, rounds, block_s)
    for work in works.values():
        work.verify()
    return blocks.samples


def measure_blocks(
    works: dict[str, Work],
    slowest: Callable[[float], float],
    rounds: int,
    block_s: float,
    most_s: float = math.inf,
) -> Blocks:
    """Time blocks of works in turn, as :func:`measure` does; the results are not verified here.

    Where ``rounds`` would take longer than ``most_s``, there are fewer, but never under
    ``FEWEST_ROUNDS``.
    """
    found = {name: _turns(work, slowest, block_s) for name, work in works.items()}
    turns = {name: number for name, (number, _) in found.items()}
    round_s = sum(number * best for number, best in found.values())
    if rounds * round_s > most_s:
        rounds = min(rounds, max(FEWEST_ROUNDS, int(most_s / round_s)))
    samples: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name in list(works)[:: 1 if number % 2 == 0 else -1]:
            calls = works[name].next_calls(turns[name])
            slowest(0.0)
            samples[name].append(slowest(timed(calls)) / turns[name])
    return Blocks(samples, turns)


def _turns(work: Work, slowest: Callable[[float], float], block_s: float) -> tuple[int, float]:
    """Use every slot once, to warm it; then see how many turns fill a block, at their best.

    Return the turns, and the seconds of one. Where one turn is far longer than a block, there is
    nothing to see.
    """
    best = slowest(timed(work.next_calls(work.slots))) / work.slots
    if best > FAR_LONGER * block_s:
        return 1, best
    best, turns = math.inf, 1
    for _ in range(CALIBRATIONS):
        best = min(best, slowest(timed(work.next_calls(turns))) / turns)
        turns = max(1, min(round(block_s / best / 4), MOST_TURNS))
    return max(1, min(round(block_s / best), MOST_TURNS)), best


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
