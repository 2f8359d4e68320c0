"""Draw the openings of a trajectory by name: seed, iteration, trajectory, stage.

No generator has a state (`cobre_comm.random`), so the draws depend neither on the number of ranks
nor on the order of work.

A small scenario tree (at most `LISTED` paths) is not sampled but walked: the i-th trajectory visits
path number i of a fixed permutation, so every pass over the tree walks rare paths too. In a large
tree, if openings are not equally likely, every second trajectory explores: it draws openings
uniformly, so that rare openings get cuts too. The cost of such a trajectory does not count in the
mean.
"""

import math

import numpy as np
from compiled import FROM_PYTHON
from numba import njit

from cobre_comm.random import Key, integers, uniform

LISTED = 20_000
"""A tree of at most so many paths is walked, path by path."""


@njit(**FROM_PYTHON)
def draw_opening(weight: np.ndarray, first: int, last: int, key: Key, explore: bool) -> int:
    """Return an opening in first..last-1 by its probability; never one of probability zero.

    A trajectory that explores draws all openings with equal probability. If it draws an opening of
    probability zero, it draws again, by probability.
    """
    if explore:
        chosen = first + integers(key, 0, last - first)
        if weight[chosen] > 0.0:
            return chosen
    u, total, chosen = uniform(key, 0), 0.0, -1
    for k in range(first, last):
        if weight[k] > 0.0:
            chosen = k
            total += weight[k]
            if u < total:
                break
    return chosen


def count_paths(first: np.ndarray) -> int:
    """Return the number of paths of the scenario tree if it is at most `LISTED`, else 0."""
    paths = math.prod(int(n) for n in np.diff(first))
    return paths if paths <= LISTED else 0


def stride_of(paths: int) -> int:
    """Return a step coprime to `paths`, near its golden section, so that walks spread evenly."""
    step = max(1, round(paths * 0.6180339887))
    while math.gcd(step, paths) != 1:
        step += 1
    return step


@njit(**FROM_PYTHON)
def listed_path(number: int, paths: int, stride: int, seed: int) -> int:
    """Return the path that the trajectory with the running number `number` walks."""
    return (number % paths * stride + seed % paths) % paths
