"""Draws are a pure function of their keys, uniform, and walk small trees completely."""

import math

import numpy as np
import pytest
from training.sampling import draw_opening, listed_path, mix, stride_of, uniform

MASK = 2**64 - 1


def reference_mix(z):
    """Return SplitMix64's output function in exact integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_mix_is_splitmix64():
    state, outputs = 1234567, []
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        outputs.append(int(mix(np.uint64(state))))
        assert outputs[-1] == reference_mix(state)
    # First outputs for this seed as published with the generator (Rosetta Code, splitmix64).
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_draws_are_pure_and_uniform():
    draws = np.array([uniform(3, i, m, t) for i in range(10) for m in range(20) for t in range(20)])
    again = [uniform(3, i, m, t) for i in range(10) for m in range(20) for t in range(20)]
    assert draws.tolist() == again
    assert len(set(again)) == len(again)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts, _ = np.histogram(draws, 10, (0.0, 1.0))
    assert np.sum((counts - 400.0) ** 2 / 400.0) < 27.9  # chi square, 9 degrees, 0.1 %


def test_openings_follow_their_probabilities():
    weight = np.array([9.0, 0.0, 0.25, 0.75, 0.0])
    assert [draw_opening(weight, 1, 5, u, False) for u in (0.0, 0.2499, 0.25, 0.9999)] == [
        2,
        2,
        3,
        3,
    ]
    assert {draw_opening(weight, 1, 5, u, True) for u in (0.3, 0.6, 0.01, 0.99)} <= {2, 3}


@pytest.mark.parametrize("paths", [1, 2, 16, 243, 1000, 19683])
def test_walking_visits_every_path_once(paths):
    stride = stride_of(paths)
    assert math.gcd(stride, paths) == 1
    visited = {listed_path(i, paths, stride, 12345) for i in range(7, 7 + paths)}
    assert visited == set(range(paths))
