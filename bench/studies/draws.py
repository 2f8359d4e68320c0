"""What a random number by name costs, beside numba's own generator, which has a state.

    python -m bench.studies draws

On one rank, loops of `@njit` code add up the numbers that they draw; from Python, arrays are drawn,
beside the arrays of `numpy.random.Generator`. The sides take turns. Prints the nanoseconds of a
number, in the best block.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from bench.ranks.timing import in_turn, timed
from cobre_comm import random

COUNT = 100_000  # numbers of a block
BLOCKS = 60
BOUND = 1000


@njit(cache=True)
def uniform_by_name(key):
    total = 0.0
    for i in range(COUNT):
        total += random.uniform(key, i)
    return total


@njit(cache=True)
def uniform_of_state(key):
    total = 0.0
    for _ in range(COUNT):
        total += np.random.random()  # noqa: NPY002  # numba has no other without an object
    return total


@njit(cache=True)
def normal_by_name(key):
    total = 0.0
    for i in range(COUNT):
        total += random.normal(key, i)
    return total


@njit(cache=True)
def normal_of_state(key):
    total = 0.0
    for _ in range(COUNT):
        total += np.random.normal()  # noqa: NPY002
    return total


@njit(cache=True)
def integers_by_name(key):
    total = 0
    for i in range(COUNT):
        total += random.integers(key, i, BOUND)
    return total


@njit(cache=True)
def integers_of_state(key):
    total = 0
    for _ in range(COUNT):
        total += np.random.randint(0, BOUND)  # noqa: NPY002
    return total


@njit(cache=True)
def keys(key):
    total = 0
    for i in range(COUNT):
        total ^= random.key(1, 2, 3, i).low
    return total


INDICES = np.arange(COUNT)
GENERATOR = np.random.Generator(np.random.Philox(1))
ROWS = {
    "uniform": (uniform_by_name, uniform_of_state),
    "normal": (normal_by_name, normal_of_state),
    "integers, bound 1000": (integers_by_name, integers_of_state),
    "key of 4 names": (keys, None),
    "uniform, array from Python": (
        lambda key: random.uniform(key, INDICES),
        lambda key: GENERATOR.random(COUNT),
    ),
    "normal, array from Python": (
        lambda key: random.normal(key, INDICES),
        lambda key: GENERATOR.standard_normal(COUNT),
    ),
    "integers, array from Python": (
        lambda key: random.integers(key, INDICES, BOUND),
        lambda key: GENERATOR.integers(0, BOUND, COUNT),
    ),
}


def best_of(sides, key):
    """Return the fewest nanoseconds per number that each side takes."""
    ways = {side: partial(timed, partial(_drawn, side, key)) for side in sides if side}
    taken = in_turn(ways, BLOCKS)
    return [1e9 * min(taken[side]) / COUNT if side else None for side in sides]


def _drawn(side, key) -> None:
    side(key)


def main() -> None:
    """Measure, and print a table."""
    key = random.key(2026, 3, 41, 7)
    print(f"{'ns a number':30}{'by name':>10}{'of a state':>12}")
    for row, sides in ROWS.items():
        found = ["" if ns is None else f"{ns:.1f}" for ns in best_of(sides, key)]
        print(f"{row:30}{found[0]:>10}{found[1]:>12}")
