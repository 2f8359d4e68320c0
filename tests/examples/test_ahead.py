"""`ahead.py` compiles exactly what a training calls."""

import json

import ahead
import pytest
from case.random_case import Shape, generate
from case.read import parse_case
from numba import typeof
from training.plan import Options
from training.run import Run
from training.share import load_case, shared_setting


@pytest.mark.ranks(1, backends=["shm", "local"])
def test_a_training_has_the_types_that_were_compiled_ahead(comm):
    alone = ahead.AloneOnLocal() if comm.backend == "local" else ahead.AloneOnShm()
    with shared_setting(comm, load_case(comm, ahead.CASE)) as setting:
        run = Run(setting, Options())
        types = tuple(typeof(each) for each in run.arguments(run.trace))
        run.close()
    assert types == ahead.types_of_training(alone)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("without", [{}, {"hydros": [], "inflows": [[[]], [[]]]}])
def test_the_smallest_cases_have_the_same_types(stages, without):
    """For an array of one entry, numba has another type, for which it would compile all again."""
    data = generate(Shape(1, 1, stages, 1), 0)
    data |= {name: value[:stages] for name, value in without.items()}
    alone = ahead.AloneOnLocal()
    smallest = parse_case(json.dumps(data).encode(), "smallest.json")
    assert ahead.types_of_training(alone, smallest) == ahead.types_of_training(alone)
