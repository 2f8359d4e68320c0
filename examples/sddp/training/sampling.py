"""Draw the openings of a trajectory: a pure function of (seed, iteration, trajectory, stage).

No generator has a state, so neither the number of ranks nor the order of work shows in the draws.
The hash is the output function of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014; constants as in S. Vigna's splitmix64.c, public
domain), applied once per key.

A small scenario tree (at most `LISTED` paths) is not sampled but walked: path number i of a fixed
permutation is visited by the i-th trajectory, so every pass over the tree walks rare paths too. In
a large one, if openings are not equally likely, every second trajectory explores: it draws openings
uniformly, so that rare ones get cuts too; it does not enter the simulated upper bound.
"""

import math

import numpy as np
from compiled import FROM_PYTHON
from numba import njit

LISTED = 20_000
"""Largest number of paths that are visited one after the other."""


@njit(**FROM_PYTHON)
def mix(z: np.uint64) -> np.uint64:
    """Return SplitMix64's output function of `z`."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(**FROM_PYTHON)
def uniform(seed: int, iteration: int, trajectory: int, stage: int) -> float:
    """Return the uniform draw in [0, 1) that belongs to these four numbers."""
    state = np.uint64(seed)
    for key in (iteration, trajectory, stage):
        state = mix(state + np.uint64(0x9E3779B97F4A7C15) + np.uint64(key))
    return (mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(**FROM_PYTHON)
def draw_opening(weight: np.ndarray, first: int, last: int, u: float, explore: bool) -> int:
    """Return the opening in first..last-1 where `u` falls; never one of probability zero."""
    chosen = -1
    if explore:
        chosen = first + int(u * (last - first))
        if weight[chosen] > 0.0:
            return chosen
    total = 0.0
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
    """Return a step coprime to `paths` near its golden section: the walk spreads evenly."""
    step = max(1, round(paths * 0.6180339887))
    while math.gcd(step, paths) != 1:
        step += 1
    return step


@njit(**FROM_PYTHON)
def listed_path(number: int, paths: int, stride: int, seed: int) -> int:
    """Return the path that the trajectory with running number `number` walks."""
    return (number % paths * stride + seed % paths) % paths
