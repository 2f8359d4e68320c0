"""Blocks of calls: sides take turns, and the time of a block is that of the slowest rank."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from bench.plan import Options

K, T = TypeVar("K"), TypeVar("T")
CALIBRATIONS = 6
# a figure needs at least so many; the median of fewer says nothing
FEWEST_BLOCKS, FEWEST_CALLS = 10, 30

# A block makes calls; it returns an error code, which must be 0, or the seconds of the calls alone.
Block = Callable[[], int | float | None]


@dataclass(frozen=True)
class Side:
    """A side of a measurement; the blocks of the side are timed."""

    prepare: Callable[[int], Block]  # is given a number of calls, and returns a block of so many
    warm: int = 2  # calls that compile everything and touch all buffers
    most: int = 100_000  # calls of a block


def loop_side(loop: Callable[[int], int | None]) -> Side:
    """Return a side of a loop that is given its number of calls."""
    return Side(lambda calls: partial(loop, calls))


def python_loop(call: Callable[[], object]) -> Side:
    """Return a side that calls from Python."""

    def loop(calls: int) -> None:
        for _ in range(calls):
            call()

    return loop_side(loop)


def timed(block: Block) -> float:
    """Return the seconds of a block on this rank; if the block measures itself, its own seconds."""
    began = time.perf_counter()
    code = block()
    seconds = time.perf_counter() - began
    if isinstance(code, float):
        return code
    if code:
        raise RuntimeError(f"a call returned the error code {code}")
    return seconds


def measure(
    sides: Mapping[str, Side], slowest: Callable[[float], float], options: Options
) -> dict[str, dict]:
    """Return the figures of all sides, by side: ``samples_s`` and ``calls``.

    ``samples_s`` are the seconds per call of every block, ``calls`` the number of calls in a block.
    The sides take turns block by block, in the opposite order in every other round. All ranks meet
    before a block in ``slowest``, which returns the largest of the numbers that ranks give to it.
    If the rounds would take longer than ``most_s``, there are fewer rounds, but never fewer than
    ``FEWEST_BLOCKS``. The caller verifies the results.
    """
    found = {name: _calls(side, slowest, options.block_s) for name, side in sides.items()}
    calls = {name: number for name, (number, _) in found.items()}
    round_s = sum(number * best for number, best in found.values())
    rounds = max(FEWEST_BLOCKS, min(options.rounds, int(options.most_s / round_s)))
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            block = sides[name].prepare(calls[name])
            slowest(0.0)
            samples[name].append(slowest(timed(block)) / calls[name])
    return {"samples_s": samples, "calls": calls}


def _calls(side: Side, slowest: Callable[[float], float], block_s: float) -> tuple[int, float]:
    """Warm up; return how many calls fill a block, and the least seconds of a call.

    The warm-up compiles, so its time does not count: how long the compilation took does not change
    the number of calls.
    """
    timed(side.prepare(side.warm))
    best, calls, fewest = math.inf, 1, math.ceil(FEWEST_CALLS / FEWEST_BLOCKS)
    for number in range(CALIBRATIONS):
        best = min(best, slowest(timed(side.prepare(calls))) / calls)
        if number and best > block_s:
            break
        calls = max(1, min(round(block_s / best / 4), side.most))
    return max(fewest, min(round(block_s / best), side.most)), best


def in_turn(sides: Mapping[K, Callable[[], T]], rounds: int) -> dict[K, list[T]]:
    """Let sides take turns; return what each took. A first round, to fill caches, is left out."""
    samples: dict[K, list[T]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            taken = side()
            if number:
                samples[name].append(taken)
    return samples
