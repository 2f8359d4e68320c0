"""Cases in which volumes, or costs of spill, span many orders of magnitude."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from case.random_case import Shape, generate
from highs_reference import extensive_form
from simplex.dual import INFEASIBLE, OPTIMAL
from simplex.state import allocate
from simplex_from_python import cold_start, rebuild, reoptimise, solve_dense
from stage.units import choose_units, refuse_sizes
from training.plan import Options
from training.run import run_case
from training.share import UsageError

from tests.wild.draw import draw, in_units, parse

HERE = Path(__file__).resolve().parent / "far_apart"


def rivers(downstream, seed=3):
    """Return a case with a hydro for each entry of ``downstream``: the hydro that gets its water.

    The case has limits and prices of water, and its units are near one.
    """
    data = generate(Shape(len(downstream), 2, 3, 3, limits=True), seed)
    for hydro, receiver in zip(data["hydros"], downstream, strict=True):
        hydro["downstream"] = receiver
    return data


def train(case, comm):
    """Train until the case is settled; return the bound, and why the training stopped."""
    training = run_case(case, comm)
    return training.lower_bound[-1], training.stopped


def test_a_cascade_far_from_the_typical_one_has_its_own_unit():
    near = parse(rivers([2, 3, -1, -1]))
    far = parse(in_units(rivers([2, 3, -1, -1]), [1e-6, 1e6, 1e-6, 1e6], 1.0, 1.0))
    assert len(set(choose_units(near).water)) == 1
    small, large = choose_units(far).water[:2]
    assert choose_units(far).water.tolist() == [small, large, small, large]
    assert (small, large) == (2.0 ** np.log2(small), 2.0 ** np.log2(large))
    assert large / small == pytest.approx(1e12, rel=0.3)


def test_a_factor_of_thirty_between_cascades_changes_no_unit():
    alike, other = (
        parse(in_units(rivers([-1, -1, -1]), factors, 1.0, 1.0))
        for factors in ([1.0, 1.0, 1.0], [1.0 / 8.0, 1.0, 8.0])
    )
    assert choose_units(alike).water.tolist() == choose_units(other).water.tolist()


@pytest.mark.parametrize("orders", [2, 7, 8, 10, 12])
def test_the_bound_does_not_depend_on_how_far_cascades_are_apart(comm, orders):
    data = rivers([2, -1, -1, 4, -1])
    optimum = extensive_form(parse(data))
    low, high = 10.0 ** (-orders / 2), 10.0 ** (orders / 2)
    case = parse(in_units(data, [low, high, low, 1.0, 1.0], 1.0, 1.0))
    assert train(case, comm) == (pytest.approx(optimum, rel=1e-7), "every path settled")


def test_two_rivers(comm):
    """With one unit for all water, a training once stopped 7e-5 below the optimum of this case."""
    case = parse(json.loads((HERE / "two_rivers.json").read_text()))
    assert train(case, comm)[0] == pytest.approx(315150.923, rel=1e-8)


@pytest.mark.parametrize("orders", [4, 7, 10, 12])
def test_within_a_cascade_a_case_is_right_or_refused(comm, orders):
    case, near = (
        parse(in_units(rivers([1, -1]), [1.0, 10.0**order], 1.0, 1.0))
        for order in (orders, min(orders, 8))
    )
    if orders > 11:
        with pytest.raises(UsageError, match=r"H0 and H1, which are in one cascade, differ by"):
            run_case(case, comm)
    else:  # beyond eight orders the optimum hardly changes, and at nine orders HiGHS fails
        assert train(case, comm)[0] == pytest.approx(extensive_form(near), rel=1e-6)


def test_spill_that_costs_millions_of_deficits_makes_no_stage_infeasible(comm):
    """The third iteration once failed with the error that a feasible stage has no dispatch."""
    case = parse(json.loads((HERE / "dear_spill.json").read_text()))
    bounds = run_case(case, comm, Options(iterations=12)).lower_bound
    assert bounds[-1] == pytest.approx(3649227513259.8, rel=1e-9)


def test_spill_that_never_comes_may_cost_anything(comm):
    """The bound once stayed 4 % low, because theta was only a millionth of the rows of cuts."""
    case = parse(json.loads((HERE / "dear_spill_that_never_comes.json").read_text()))
    assert train(case, comm)[0] == pytest.approx(extensive_form(case), rel=1e-6)


def column_of_small_numbers(entry=1e-10):
    """Return a program that is feasible only by its second variable, which has a small entry."""
    cost, a = np.array([0.0, 1.0]), np.array([[1.0, entry]])
    rows = np.array([5.0]), np.array([np.inf])
    return cost, a, rows, (np.zeros(2), np.array([1.0, np.inf]))


@pytest.mark.slow
def test_a_column_of_small_numbers_makes_a_program_feasible():
    outcome, lp = solve_dense(*column_of_small_numbers())
    assert outcome == OPTIMAL
    assert lp.x.tolist()[:2] == pytest.approx([1.0, 4e10])


@pytest.mark.slow
def test_a_basis_with_a_column_of_small_numbers_is_not_singular():
    cost, a, rows, bounds = column_of_small_numbers()
    lp = allocate(a, 0, 0)
    lp.cost[:] = cost
    lp.lower[:], lp.upper[:] = np.append(bounds[0], rows[0]), np.append(bounds[1], rows[1])
    assert cold_start(lp)
    assert reoptimise(lp) == OPTIMAL
    assert rebuild(lp)
    assert reoptimise(lp) == OPTIMAL


def test_an_entry_of_zero_makes_no_program_feasible():
    assert solve_dense(*column_of_small_numbers(0.0))[0] == INFEASIBLE


def test_the_numbers_of_wild_cases_are_far_apart():
    oddities = [odd for number in range(40) for odd in draw(number).oddities]
    assert "spill_costs_more_than_all" in oddities
    assert "cascades_in_other_units" in oddities


@pytest.mark.parametrize(
    ("discount", "said"),
    [
        ([1e-9, 1.0, 1e9, 1.0], "stage 1 count 1e[+]09 times as much as those of stage 0"),
        ([1.0, 1e-5, 1e-2, 2e3], "stage 3 count 2e[+]08 times as much as those of stage 1"),
        ([0.0, 1e-4, 1e4, 1.0], "^$"),
        ([1.0, 1e-10, 1e-20, 0.0], "^$"),  # discounts may be far apart if they fall
    ],
)
def test_discounts_that_rise_too_far_are_refused(discount, said):
    data = generate(Shape(1, 1, 4, 1), 0) | {"discount": discount}
    assert re.search(said, refuse_sizes(parse(data)))
