"""The simplex beside HiGHS, on programs that are no stage problems."""

import numpy as np
import pytest
from highs_reference import solve_highs
from simplex.dual import INFEASIBLE, NOT_DUAL_FEASIBLE, OPTIMAL
from simplex.state import ROWS, allocate
from simplex_from_python import (
    add_row,
    cold_start,
    drop_slack_rows,
    rebuild,
    reoptimise,
    solve_dense,
)


def random_program(rng):
    """Return cost, matrix, row bounds and bounds; half of the programs are degenerate."""
    m, n = int(rng.integers(1, 16)), int(rng.integers(1, 40))
    whole = rng.random() < 0.5
    entries = rng.integers(-3, 4, (m, n)) if whole else rng.normal(size=(m, n))
    a = np.where(rng.random((m, n)) < rng.choice([0.2, 0.5, 1.0]), entries, 0.0)
    lower = np.where(rng.random(n) < 0.7, 0.0, rng.integers(-3, 3, n))
    width = rng.integers(0, 5, n) if whole else rng.exponential(2.0, n)
    upper = lower + np.where(rng.random(n) < 0.5, np.inf, width)
    cost = (rng.integers(0, 4, n) if whole else rng.exponential(1.0, n)).astype(float)
    cost[(rng.random(n) < 0.3) & np.isfinite(upper)] *= -1.0
    point = lower + np.minimum(upper - lower, rng.integers(0, 3, n))
    free = rng.random(n) < 0.1
    cost[free], lower[free], upper[free] = 0.0, -np.inf, np.inf
    kind = rng.integers(0, 3, m)
    level = a @ point + (rng.integers(-2, 3, m) if rng.random() < 0.2 else 0.0)
    low, high = np.where(kind == 1, -np.inf, level), np.where(kind == 2, np.inf, level)
    return cost, a, (low, high), (lower, upper)


def check_program(program):
    """Compare the solution of one program with HiGHS's; return the name of the outcome."""
    cost, a, rows, bounds = program
    outcome, lp = solve_dense(cost, a, rows, bounds)
    status, value = solve_highs(cost, a, rows, bounds)
    if outcome == INFEASIBLE:
        assert status == "kInfeasible"
        return "infeasible"
    assert outcome == OPTIMAL
    size, x = max(1.0, abs(value)), lp.x[: cost.size]
    if status == "kOptimal":
        assert abs(cost @ x - value) <= 1e-9 * size
        assert abs(lp.base[0] - value) <= 1e-9 * size
    assert abs(cost @ x - lp.base[0]) <= 1e-9 * size
    z = a @ x
    for values, (low, high) in ((x, bounds), (z, rows)):
        assert np.all(values >= low - 1e-9 * (1.0 + abs(values)))
        assert np.all(values <= high + 1e-9 * (1.0 + abs(values)))
    reduced = cost - a.T @ lp.y[: a.shape[0]]
    assert np.all(reduced[np.isinf(bounds[1])] >= -1e-9)
    assert np.all(reduced[np.isinf(bounds[0])] <= 1e-9)
    return "optimal"


MANY = [pytest.param(seed, 2000, 0, marks=pytest.mark.slow) for seed in range(100, 110)]


@pytest.mark.parametrize(
    ("seed", "programs", "fewest"), [*((seed, 200, 2) for seed in range(10)), *MANY]
)
def test_random_programs_agree_with_highs(seed, programs, fewest):
    """Programs with fewer entries than ``fewest`` are left out.

    numba has another type for an array of at most one entry, and would compile everything again for
    that type.
    """
    rng = np.random.default_rng(seed)
    drawn = [random_program(rng) for _ in range(programs)]
    outcomes = {check_program(each) for each in drawn if np.count_nonzero(each[1]) >= fewest}
    assert outcomes == {"optimal", "infeasible"}


def test_cost_that_prefers_an_infinite_bound_is_refused():
    one = np.ones(1)
    rows, bounds = (-one, one), (np.zeros(2), np.full(2, np.inf))
    assert solve_dense(np.array([-1.0, 0.0]), np.ones((1, 2)), rows, bounds)[0] == NOT_DUAL_FEASIBLE


def test_highly_degenerate_transport_problem_ends():
    size = 6
    a = np.zeros((2 * size, size * size))
    for i in range(size):
        for j in range(size):
            a[i, i * size + j] = a[size + j, i * size + j] = 1.0
    cost = np.array([float((i * j) % 3) for i in range(size) for j in range(size)])
    ones = np.ones(2 * size)
    bounds = (np.zeros(size * size), np.full(size * size, np.inf))
    assert check_program((cost, a, (ones, ones), bounds)) == "optimal"


@pytest.mark.parametrize("seed", range(50))
def test_rows_added_while_solving_give_the_optimum_with_all_rows(seed):
    rng = np.random.default_rng(seed)
    n, extra = 6, 12
    a, cuts = rng.normal(size=(2, n)), rng.normal(size=(extra, n))
    cost, low, high = rng.exponential(1.0, n), np.zeros(n), np.full(n, 5.0)
    point = rng.uniform(0.0, 5.0, n)
    right, levels = a @ point, cuts @ point - rng.exponential(0.5, extra)
    lp = allocate(a, n + 2, n)
    lp.cost[:] = cost
    lp.lower[: n + 2], lp.upper[: n + 2] = np.append(low, right), np.append(high, right)
    assert cold_start(lp)
    for _ in range(200):
        assert reoptimise(lp) == OPTIMAL
        missing = levels - cuts @ lp.x[:n]
        worst = int(np.argmax(missing))
        if missing[worst] <= 1e-9:
            break
        if lp.head[ROWS] == lp.basis.size:
            drop_slack_rows(lp)
        add_row(lp, cuts[worst], levels[worst], worst)
    rows = np.append(right, levels), np.append(right, np.full(extra, np.inf))
    _, value = solve_highs(cost, np.vstack([a, cuts]), rows, (low, high))
    assert lp.base[0] == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert rebuild(lp)
    assert reoptimise(lp) == OPTIMAL
    assert lp.base[0] == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_a_solve_depends_only_on_its_data():
    program = random_program(np.random.default_rng(5))
    first = solve_dense(*program)[1]
    for seed in range(20):
        solve_dense(*random_program(np.random.default_rng(seed)))
    again = solve_dense(*program)[1]
    assert first.x.tobytes() == again.x.tobytes()
    assert first.y.tobytes() == again.y.tobytes()


@pytest.mark.parametrize(("apart", "is_regular"), [(1e-6, True), (1e-10, True), (0.0, False)])
def test_a_basis_of_rows_that_are_nearly_alike_is_rebuilt(apart, is_regular):
    a = np.array([[1.0, 1.0], [1.0, 1.0 + apart]])
    lp = allocate(a, 0, 0)
    assert cold_start(lp)
    lp.place[:] = 0, 1, -1, -1  # both variables are basic, and no row is basic
    assert rebuild(lp) == is_regular
    if is_regular:
        # in `inverse`, a line belongs to a row of `a`, and a column to the place of a variable
        at = lp.inverse[:, lp.place[:2]]
        np.testing.assert_allclose(at @ a, -np.eye(2), atol=1e-4)
