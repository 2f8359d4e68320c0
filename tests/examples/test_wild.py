"""A few wild cases every day; `make wild` has hundreds."""

import os

import pytest
from case.random_case import Shape, generate
from training.plan import Options
from training.run import run_case

from tests.wild.draw import draw, draw_for_cobre, parse
from tests.wild.judge import judge
from tests.wild.oddities import give
from tests.wild.processes import ask_each
from tests.wild.summary import Tally

EVERY_DAY = (0, 1, 2)


def test_a_number_is_always_the_same_case():
    assert draw(3) == draw(3) != draw(4)
    assert draw_for_cobre(3) == draw_for_cobre(3) != draw_for_cobre(4)


@pytest.mark.parametrize("number", EVERY_DAY)
def test_a_wild_case_trains_to_the_optimum(comm, number):
    found = judge(number, comm)
    assert not found["problems"]


def test_entries_beside_a_large_column_are_not_overlooked(comm):
    """Cuts of slopes near 1e-8 are scaled up: a feasible stage was said to have no dispatch."""
    data = generate(Shape(19, 6, 11, 5, random_demand=True), 863217)
    give((data["hydros"][h] for h in (0, 4, 6, 11, 13, 14, 16, 17)), spill_cost=0.0)
    give((data["hydros"][h] for h in (0, 1, 7)), vmin=0.0, vmax=0.0, v0=0.0)
    data["inflows"] = [[stage[0]] * len(stage) for stage in data["inflows"]]
    training = run_case(parse(data), comm, Options(iterations=20, trajectories=4))
    assert training.lower_bound[-1] == 0.0


def test_a_process_that_crashes_or_hangs_costs_only_its_number(capsys):
    acts = [lambda: {"number": 0, "problems": []}, os.abort, lambda: os.read(os.pipe()[0], 1)]
    answers = dict(ask_each(lambda number: acts[number](), [0, 1, 2], workers=2, limit_s=1.0))
    assert answers == {
        0: {"number": 0, "problems": []},
        1: "no answer: its process ended with -6",
        2: "no answer within 1 s",
    }
    tally = Tally()
    for number, found in answers.items():
        tally.add("wild", number, found)
    assert "2 failures" in tally.text(60.0)
    assert "MISS failed: python -m tests.wild --number 2" in capsys.readouterr().out
