"""Statistical tests of random numbers, most of them of numbers whose names are neighbours.

Seeds are fixed, so a test that passes once passes always. Bounds are five standard deviations. The
bound of Kolmogorov and Smirnov's distance is exceeded once in 10 million cases. For each test there
are numbers that are wrong on purpose, and that fail the test.
"""

import math

import numpy as np
import pytest
from numba import njit

from cobre_comm import random
from tests.random.reference import distribution

COUNT = 40_000
SIGMAS = 5.0
DISTANCE = 2.9  # P(sqrt(n) D > 2.9) = 2 exp(-2 * 2.9**2) = 1e-7
PLACES = {"seed": 0, "iteration": 1, "scenario": 2, "stage": 3, "i": 4}


@njit
def along(place, count, kind):
    """Return numbers; one of their names counts up from number to number, the other names stay."""
    names, drawn = np.array([2026, 3, 41, 7, 0]), np.empty(count)
    for n in range(count):
        key = random.key(names[0], names[1], names[2], names[3])
        drawn[n] = random.uniform(key, names[4]) if kind == 0 else random.normal(key, names[4])
        names[place] += 1
    return drawn


def sigmas_of_counts(cells, count):
    """Return by how many standard deviations the chi-square of equally probable cells is wrong."""
    expected = len(cells) / count
    chi_square = ((np.bincount(cells, minlength=count) - expected) ** 2 / expected).sum()
    return abs(chi_square - (count - 1)) / math.sqrt(2 * (count - 1))


def sigmas_of_ones(x):
    """Return ``sigmas_of_counts`` for numbers in 256 intervals of equal length."""
    return sigmas_of_counts((x * 256).astype(int), 256)


def sigmas_of_neighbours(x):
    """Return ``sigmas_of_counts`` for pairs of neighbours in 256 parts of the unit square."""
    cells = (x * 16).astype(int)
    return sigmas_of_counts(16 * cells[0::2] + cells[1::2], 256)


def sigmas_of_triples(x):
    cells = (x * 6).astype(int)[: len(x) // 3 * 3]
    return sigmas_of_counts(36 * cells[0::3] + 6 * cells[1::3] + cells[2::3], 216)


def sigmas_of_runs(x):
    """Return how wrong the number of runs about 1/2 is (A. Wald and J. Wolfowitz, 1940)."""
    above = x >= 0.5
    runs = 1 + np.count_nonzero(above[1:] != above[:-1])
    n, m = np.count_nonzero(above), np.count_nonzero(~above)
    mean = 1 + 2 * n * m / (n + m)
    variance = (mean - 1) * (mean - 2) / (n + m - 1)
    return abs(runs - mean) / math.sqrt(variance) if variance > 0 else math.inf


def sigmas_of_correlation(x):
    """Return the largest correlation of numbers 1 to 8 names apart, in standard deviations."""
    return max(
        abs(np.corrcoef(x[lag:], x[:-lag])[0, 1]) * math.sqrt(len(x) - lag) for lag in range(1, 9)
    )


def sigmas_of_low_bits(x):
    """Return ``sigmas_of_counts`` for the last byte of each number as a multiple of 2**-53."""
    return sigmas_of_counts((x * 2.0**53).astype(np.int64) & 255, 256)


def distance(x, probability):
    """Return sqrt(n) times Kolmogorov and Smirnov's distance, scaled so that SIGMAS bounds it."""
    p, n = np.array([probability(each) for each in np.sort(x)]), len(x)
    steps = np.arange(n + 1) / n
    found = max(np.abs(p - steps[:-1]).max(), np.abs(p - steps[1:]).max())
    return found * math.sqrt(n) * SIGMAS / DISTANCE


TESTS = {
    "one dimension": sigmas_of_ones,
    "two dimensions": sigmas_of_neighbours,
    "three dimensions": sigmas_of_triples,
    "runs": sigmas_of_runs,
    "correlation": sigmas_of_correlation,
    "low bits": sigmas_of_low_bits,
    "distance": lambda x: distance(x, lambda p: p),
}


@pytest.mark.parametrize("place", PLACES)
def test_uniform_numbers_of_neighbouring_names(place):
    drawn = along(PLACES[place], COUNT, 0)
    assert {name: test(drawn) for name, test in TESTS.items() if test(drawn) > SIGMAS} == {}
    assert 0.0 <= drawn.min() < 1e-3
    assert 0.999 < drawn.max() < 1.0


def test_pairs_of_names():
    """One name counts up while another counts down, so that their sum stays."""
    keys = [random.key(k, COUNT // 8 - k) for k in range(COUNT // 8)]
    drawn = np.array([random.uniform(key, 0) for key in keys])
    assert max(test(drawn) for test in TESTS.values()) < SIGMAS


def moments(x):
    """Return by how many standard deviations each of the first four moments is wrong."""
    n = len(x)
    squares = [
        (x.mean(), 0, 1),
        ((x**2).mean(), 1, 2),
        ((x**3).mean(), 0, 15),
        ((x**4).mean(), 3, 96),
    ]
    return [abs(found - right) / math.sqrt(variance / n) for found, right, variance in squares]


def sigmas_of_tails(x):
    """Return how wrong the count of numbers beyond 3 standard deviations is."""
    p = 2 * distribution(-3.0)
    return abs(np.count_nonzero(np.abs(x) > 3) - p * len(x)) / math.sqrt(p * len(x))


NORMAL_TESTS = {
    "moments": lambda x: max(moments(x)),
    "distance": lambda x: distance(x, distribution),
    "correlation": sigmas_of_correlation,
    "tails": sigmas_of_tails,
}


@pytest.mark.parametrize("place", PLACES)
def test_normal_numbers_of_neighbouring_names(place):
    drawn = along(PLACES[place], COUNT, 1)
    failed = {name: test(drawn) for name, test in NORMAL_TESTS.items() if test(drawn) > SIGMAS}
    assert failed == {}


@pytest.mark.parametrize("bound", [2, 3, 10, 100, 2**8 + 1])
def test_small_integers(bound):
    drawn = random.integers(random.key(1, bound), np.arange(COUNT), bound)
    assert drawn.min() == 0
    assert drawn.max() == bound - 1
    assert sigmas_of_counts(drawn, bound) < SIGMAS


def test_large_integers_are_not_favoured():
    """Without repeated draws, 64 bits times 3/8 would favour two of three consecutive integers."""
    drawn = random.integers(random.key(1), np.arange(COUNT), 3 * 2**61)
    assert sigmas_of_counts(drawn % 3, 3) < SIGMAS
    assert sigmas_of_ones(drawn / (3 * 2**61)) < SIGMAS
    words = [int(x) for x in np.random.default_rng(1).integers(0, 2**64, COUNT, dtype=np.uint64)]
    biased = np.array([word * 3 // 8 % 3 for word in words])
    assert sigmas_of_counts(biased, 3) > SIGMAS


def test_distributions_of_the_same_names_are_independent():
    key, indices = random.key(2), np.arange(COUNT)
    columns = [
        random.uniform(key, indices),
        random.normal(key, indices),
        random.integers(key, indices, 2**62).astype(float),
    ]
    found = np.corrcoef(columns) - np.eye(3)
    assert np.abs(found).max() * math.sqrt(COUNT) < SIGMAS


def test_one_bit_of_a_name_changes_half_of_the_bits_of_a_key():
    changed, count = 0, 0
    for place in range(4):
        for bit in range(63):
            names = [2026, 3, 41, 7]
            before = random.key(*names)
            names[place] ^= 1 << bit
            after = random.key(*names)
            for one, other in zip(before, after, strict=True):
                changed += ((one ^ other) % 2**64).bit_count()
                count += 64
    assert abs(changed - count / 2) < SIGMAS * math.sqrt(count) / 2


def _planes(x):
    """Make every third number depend on the two numbers before it, which stay independent."""
    x[2::3] = (x[0:-2:3] + x[1:-1:3]) % 1.0
    return x


good = np.random.default_rng(1)
WRONG = {
    "one dimension": good.random(COUNT) ** 1.1,
    "two dimensions": np.repeat(good.random(COUNT // 2), 2),
    "three dimensions": _planes(good.random(COUNT - 1)),
    "runs": np.sort(good.random(COUNT)),
    "correlation": (np.arange(COUNT) * 0.001 + 0.1 * good.random(COUNT)) % 1.0,
    "low bits": good.random(COUNT, dtype=np.float32).astype(float),
    "distance": 0.97 * good.random(COUNT),
}
WRONG_NORMAL = {
    "moments": 1.05 * good.standard_normal(COUNT),
    "distance": good.standard_normal(COUNT) + 0.05,
    "correlation": np.repeat(good.standard_normal(COUNT // 2), 2),
    "tails": np.clip(good.standard_normal(COUNT), -3.0, 3.0),
}


@pytest.mark.parametrize("name", TESTS)
def test_wrong_numbers_are_found(name):
    assert TESTS[name](WRONG[name]) > SIGMAS


@pytest.mark.parametrize("name", NORMAL_TESTS)
def test_wrong_normal_numbers_are_found(name):
    assert NORMAL_TESTS[name](WRONG_NORMAL[name]) > SIGMAS
