"""Cases of any size, each drawn from its number, and the results of training them."""

import json
from unittest import mock

import numpy as np
from case.random_case import Shape, generate
from case.read import parse_case
from training.plan import Options
from training.run import run_case


def case_of(shape, seed):
    """Return the case that `generate.py` writes."""
    return parse_case(json.dumps(generate(shape, seed)).encode(), "case.json")


def drawn_case(number):
    """Return case `number`: it has 4 to 40 hydros, and all its other numbers are drawn too."""
    rng = np.random.default_rng([17, number])
    optional = (bool(drawn) for drawn in rng.random(5) < 0.3)
    hydros, thermals = int(rng.integers(4, 41)), int(rng.integers(0, 13))
    stages, openings = int(rng.integers(3, 13)), int(rng.integers(2, 9))
    shape = Shape(hydros, thermals, stages, openings, *optional)
    return case_of(shape, int(rng.integers(0, 10**6)))


def train_drawn(comm, numbers):
    """Return the bounds and the digest of the cuts of each case after twenty iterations."""
    results = []
    for number in numbers:
        options = Options(iterations=20, trajectories=4)
        training = run_case(drawn_case(number), comm, options)
        bounds = [bound.hex() for bound in training.lower_bound]
        results.append((number, bounds, training.cuts_sha256))
    return results


def train_selected(comm, ring, iterations=12, checkpoint=None, select=True):
    """Train with cuts selected by ``ring`` points of a stage; return bounds, numbers and digest."""
    case = case_of(Shape(6, 4, 8, 6), 1)
    options = Options(iterations, trajectories=13, checkpoint=checkpoint, select=select)
    with mock.patch("training.plan.REMEMBERED", ring):
        training = run_case(case, comm, options)
    bounds = [bound.hex() for bound in training.lower_bound]
    return bounds, training.trace["cuts"].tolist(), training.cuts_sha256


def train_each(comm, rings):
    """Train once for each number of points in `rings`, in one process; return the results."""
    return [train_selected(comm, ring) for ring in rings]
