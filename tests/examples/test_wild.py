"""A few wild cases are tried every day; `make wild` tries hundreds."""

import os
import signal

import numpy as np
import pytest
from case.random_case import Shape, generate
from training.plan import Options
from training.run import run_case

from tests.forked import each
from tests.wild.draw import draw, draw_for_cobre, parse
from tests.wild.judge import judge
from tests.wild.oddities import give
from tests.wild.summary import Tally

EVERY_DAY = (0, 11, 15, 19, 31)  # each case takes less than a second


def test_a_number_is_always_the_same_case():
    assert draw(3) == draw(3) != draw(4)
    assert draw_for_cobre(3) == draw_for_cobre(3) != draw_for_cobre(4)


@pytest.mark.parametrize("number", EVERY_DAY)
def test_a_wild_case_trains_to_the_optimum(comm, number):
    found = judge(number, comm)
    assert not found["problems"]


def flat_cuts():
    """A case of cuts with slopes near 1e-8: the rows of the cuts are scaled up to many millions."""
    data = generate(Shape(19, 6, 11, 5, random_demand=True), 863217)
    give((data["hydros"][h] for h in (0, 4, 6, 11, 13, 14, 16, 17)), spill_cost=0.0)
    give((data["hydros"][h] for h in (0, 1, 7)), vmin=0.0, vmax=0.0, v0=0.0)
    data["inflows"] = [[stage[0]] * len(stage) for stage in data["inflows"]]
    return data


def parallel_cuts():
    """A case of cuts with slopes that differ by 1e-4: an inverse basis has entries of 2e9."""
    shape = Shape(40, 3, 10, 7, random_demand=True, uneven=True, buses=5)
    data = generate(shape, 43932)
    data["inflows"] = np.zeros_like(data["inflows"]).tolist()
    return data


@pytest.mark.parametrize(("make", "passes"), [(flat_cuts, 4), (parallel_cuts, 8)])
def test_cuts_make_no_stage_infeasible(comm, make, passes):
    """The training of each case once raised that a feasible stage has no dispatch."""
    training = run_case(parse(make()), comm, Options(iterations=20, trajectories=passes))
    assert np.all(np.diff(training.lower_bound) >= 0.0)


def test_a_process_that_crashes_or_hangs_costs_only_its_number(capsys):
    acts = [
        lambda: {"number": 0, "problems": []},
        lambda: os.kill(os.getpid(), 9),
        lambda: os.read(os.pipe()[0], 1),
    ]
    answers = dict(each(lambda number: acts[number](), [0, 1, 2], workers=2, within_s=1.0))
    assert answers[0] == {"number": 0, "problems": []}
    assert answers[1] == -signal.SIGKILL
    assert isinstance(answers[2], TimeoutError)
    tally = Tally()
    for number, found in answers.items():
        tally.add("wild", number, found)
    assert "2 failures" in tally.text(60.0)
    assert "MISS failed: python -m tests.wild --number 2" in capsys.readouterr().out
