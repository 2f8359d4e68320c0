"""Draws depend on their names and on the probabilities alone; small trees are walked completely."""

import math

import numpy as np
import pytest
from training.sampling import draw_opening, listed_path, stride_of

from cobre_comm import random

WEIGHT = np.array([9.0, 0.0, 0.25, 0.75, 0.0])  # entries 1 to 4 are the stage's openings
KEYS = [
    random.key(3, iteration, m, t) for iteration in range(5) for m in range(8) for t in range(20)
]


def test_openings_follow_their_probabilities():
    drawn = [draw_opening(WEIGHT, 1, 5, key, False) for key in KEYS]
    assert drawn == [2 if random.uniform(key, 0) < 0.25 else 3 for key in KEYS]
    assert drawn.count(2) == pytest.approx(200, abs=40)  # 3.3 standard deviations


def test_a_trajectory_that_explores_draws_all_openings_alike():
    weight = np.array([0.0, 0.01, 0.99, 0.0])
    drawn = [draw_opening(weight, 1, 3, key, True) for key in KEYS]
    assert set(drawn) == {1, 2}
    assert drawn.count(1) == pytest.approx(400, abs=47)
    assert {draw_opening(WEIGHT, 1, 5, key, True) for key in KEYS} == {2, 3}


@pytest.mark.parametrize("paths", [1, 2, 16, 243, 1000, 19683])
def test_walking_visits_every_path_once(paths):
    stride = stride_of(paths)
    assert math.gcd(stride, paths) == 1
    visited = {listed_path(i, paths, stride, 12345) for i in range(7, 7 + paths)}
    assert visited == set(range(paths))
