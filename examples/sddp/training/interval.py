"""Intervals of a mean by Student's t, from exact sums over all ranks."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

CHANCE = 0.025
"""The chance that a mean is above its 95 % interval, and the chance that it is below."""

FEW = 100
"""Up to so many degrees of freedom the distribution is summed; for more, a series is as exact."""

HALVINGS = 60


def student_quantile(chance: float, degrees: int) -> float:
    """Return the number that Student's t exceeds with probability `chance`, at most one half.

    M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964: the distribution is a finite
    sum (26.7.3 and 26.7.4), which is inverted by halving; for many degrees of freedom, the series
    26.7.5.
    """
    if degrees > FEW:
        x = -NormalDist().inv_cdf(chance)
        terms = (
            (x**3 + x) / 4.0,
            (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0,
            (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0,
            (79.0 * x**9 + 776.0 * x**7 + 1482.0 * x**5 - 1920.0 * x**3 - 945.0 * x) / 92160.0,
        )
        return x + sum(term / degrees ** (i + 1) for i, term in enumerate(terms))
    low, high = 0.0, math.pi / 2.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _within(middle, degrees) < 1.0 - 2.0 * chance:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """Return the probability that t is between -x and x, where x = sqrt(degrees) tan(angle)."""
    square, odd = math.cos(angle) ** 2, degrees % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for j in range(1 + odd, degrees, 2):
        total += term
        term *= square * j / (j + 1.0)
    if odd:
        return (angle + math.sin(angle) * total) * 2.0 / math.pi
    return math.sin(angle) * total


def half_width_factor(count: int, chance: float = CHANCE) -> float:
    """Return half an interval of the mean of `count` numbers, in standard errors, or NaN.

    The mean is above the interval with probability `chance`, and below it with the same
    probability. For a single number, the result is NaN.
    """
    return student_quantile(chance, count - 1) if count > 1 else math.nan


def mean_interval(
    comm: Any, mine: np.ndarray, count: int, chance: float = CHANCE
) -> tuple[float, float]:
    """Return mean and half-width of `count` numbers; this rank has `mine`; collective.

    Exact sums give the same bits however the numbers are split over ranks. For a single number, the
    half-width is NaN.
    """
    mean = comm.exact_sum(mine) / count
    squares = comm.exact_sum((mine - mean) ** 2)
    if count == 1:
        return mean, math.nan
    return mean, half_width_factor(count, chance) * math.sqrt(squares / (count - 1) / count)
