"""Solve the problem of one stage at one point; add each cut that is found violated.

The order in which a rank solves stage problems must not change their solutions. So every solve
starts from the stage's reference basis, which is the same on all ranks, or from the preceding
opening of the same point; a point is never divided between ranks.
"""

import math

import numpy as np
from compiled import plain
from simplex.basis import cold_start
from simplex.dual import FAILED, FEASIBLE, INFEASIBLE, OPTIMAL
from simplex.rows import add_row, drop_slack_rows
from simplex.solve import reoptimise
from simplex.state import RESULT, ROWS, Lp, allocate, copy_values, rows_of

from stage.pool import Pool, highest_cut
from stage.problem import Problem

VIOLATED, ZERO = 1e-9, 1e-12
"""A cut is added if it exceeds theta by more than `VIOLATED` times theta, plus `ZERO`."""

LOOSE, LOOSEST = 1e-7, 1e-11
"""A row is loose if its cut exceeds theta by more than `LOOSE` times theta, plus `LOOSEST`."""

LOOSE_ROW = 4
"""Added to the slot of a loose row, so that the sum is no outcome of `simplex.dual`."""

NONE = -1

COARSER, COARSEST = 100.0, 1e-5
"""After a failed solve, `VIOLATED` is multiplied by `COARSER`, up to `COARSEST`."""

FLAT = 1.0 / 64.0
"""If a cut's slopes are below this part of its intercept, that part determines the scale."""


BEYOND = 4.0 * FEASIBLE
"""`move_bound` moves a bound by this much, times one plus the size of the bound."""

SPARE = 40
"""Room for cuts that do not bind, beside the H + 1 cuts that can bind."""


def new_program(problem: Problem) -> Lp:
    """Return the memory of a stage problem."""
    hydros = problem.start.size
    lp = allocate(problem.a, hydros + 1 + SPARE, hydros + 1)
    lp.ceiling[:] = problem.ceiling
    return lp


@plain
def open_stage(lp: Lp, problem: Problem, t: int) -> bool:
    """Put `lp` at the cold start of stage `t`; bounds that depend on the point are not set here."""
    copy_values(problem.cost[t], lp.cost)
    copy_values(problem.lower[t], lp.lower)
    copy_values(problem.upper[t], lp.upper)
    limits = lp.cost.size + rows_of(lp) - problem.least.shape[1]
    copy_values(problem.least[t], lp.lower[limits:])
    copy_values(problem.most[t], lp.upper[limits:])
    lp.key[:] = -1
    return cold_start(lp)


@plain
def set_point(lp: Lp, volume: np.ndarray, noise: np.ndarray) -> None:
    """Set the right-hand side: the incoming `volume`, and the `noise` of one opening."""
    n, hydros = lp.cost.size, volume.size
    for i in range(noise.size):
        level = noise[i] + volume[i] if i < hydros else noise[i]
        lp.lower[n + i] = level
        lp.upper[n + i] = level


@plain
def write_row(pool: Pool, t: int, c: int, row: np.ndarray) -> float:
    """Write cut `c` of stage `t` to `row`, scaled, and return its least activity.

    The scale brings the coefficients on volumes near one. If water is nearly worthless, a solver
    with tolerances for numbers near one would take unscaled cuts for equal. The scale is a power of
    two, so it is exact.
    """
    hydros = row.size - 1
    low = pool.coef[t, hydros, c]
    largest = FLAT * abs(low)
    for h in range(hydros):
        largest = max(largest, abs(pool.coef[t, h, c]))
    scale = math.ldexp(1.0, -math.frexp(largest)[1]) if largest > 0.0 else 1.0
    for h in range(hydros):
        row[h] = -scale * pool.coef[t, h, c]
    row[hydros] = scale
    return scale * low


@plain
def solve_stage(lp: Lp, pool: Pool, t: int, row: np.ndarray) -> int:
    """Solve `lp` for its present point under all cuts of stage `t`.

    `row` is work space for H + 1 coefficients. Returns an outcome of `simplex.dual`. Cuts that are
    nearly alike can make every basis nearly singular. So if a problem fails, it is begun anew
    without cuts, and then gets only cuts that exceed theta by a larger margin. A problem is
    infeasible only if it is infeasible without cuts.

    A row is loose (:func:`is_loose`) if its cut exceeds theta by much, although the row keeps its
    bound within the tolerance. Then the problem is solved with the row's bound moved beyond the
    tolerance, so that the row comes into the basis, and from there with the row's own bound.
    """
    violated, moves, slot, key, low = VIOLATED, 0, NONE, NONE, 0.0
    while True:
        outcome = add_violated(lp, pool, t, row, violated)
        if slot != NONE:
            if lp.key[slot] == key:  # the row is not there if it was dropped
                lp.lower[lp.cost.size + rows_of(lp) + slot] = low
            slot = NONE
        elif outcome >= LOOSE_ROW and moves < lp.key.size:
            moves, slot = moves + 1, outcome - LOOSE_ROW
            key, low = lp.key[slot], move_bound(lp, slot)
        elif outcome == OPTIMAL or outcome >= LOOSE_ROW:
            return OPTIMAL
        elif outcome == INFEASIBLE or violated >= COARSEST:
            return outcome
        else:
            violated *= COARSER
            lp.key[:] = -1
            cold_start(lp)


@plain
def move_bound(lp: Lp, slot: int) -> float:
    """Move the bound of a row beyond its tolerance, and return the bound before."""
    var = lp.cost.size + rows_of(lp) + slot
    low = lp.lower[var]
    lp.lower[var] = low + BEYOND * (1.0 + abs(low))
    return low


@plain
def slot_of(lp: Lp, c: int) -> int:
    """Return the slot of the row of cut `c`; -1 if the cut has no row."""
    for slot in range(lp.key.size):
        if lp.key[slot] == c:
            return slot
    return -1


@plain
def is_loose(lp: Lp, slot: int, hydros: int) -> bool:
    """Tell whether a cut exceeds theta by much, although its row is kept within its tolerance.

    This happens if the slopes of the cut are large, so that theta is a small part of the row.
    """
    var = lp.cost.size + rows_of(lp) + slot
    miss = (lp.lower[var] - lp.x[var]) / lp.cut[slot, hydros]
    return miss > LOOSE * abs(lp.x[hydros]) + LOOSEST


@plain
def add_violated(lp: Lp, pool: Pool, t: int, row: np.ndarray, violated: float) -> int:
    """Solve `lp`, adding the cut that most exceeds theta, until no cut exceeds it by `violated`.

    Returns an outcome, or `LOOSE_ROW` plus the slot of a row. A larger theta satisfies every cut,
    so only the rows of the case can be infeasible. If the solver finds rows with cuts infeasible,
    it has failed.
    """
    hydros = row.size - 1
    room = lp.basis.size
    if lp.head[ROWS] > rows_of(lp) + hydros + 8:
        drop_slack_rows(lp)
    for _ in range(pool.count[t] + 1000):
        outcome = reoptimise(lp)
        if outcome != OPTIMAL:
            if outcome == INFEASIBLE and lp.head[ROWS] > rows_of(lp):
                outcome = lp.head[RESULT] = FAILED
            return outcome
        theta = lp.x[hydros]
        best, _ = highest_cut(pool, t, lp.x, theta + violated * abs(theta) + ZERO)
        if best < 0:
            return OPTIMAL
        slot = slot_of(lp, best)
        if slot >= 0:
            # The cut has a row, and is still violated: this is rounding, or the row is loose.
            return LOOSE_ROW + slot if is_loose(lp, slot, hydros) else OPTIMAL
        if lp.head[ROWS] == room:
            drop_slack_rows(lp)
        add_row(lp, row, write_row(pool, t, best, row), best)
    lp.head[RESULT] = FAILED
    return FAILED


@plain
def refer_stage(
    lp: Lp, problem: Problem, pool: Pool, t: int, volume: np.ndarray, row: np.ndarray
) -> None:
    """Leave in `lp` the reference basis of stage `t`: its solution at `volume`, first opening.

    If the problem cannot be solved at that point, the reference is the cold start. A rank that
    needs this point then reports the failure.
    """
    open_stage(lp, problem, t)
    set_point(lp, volume, problem.noise[problem.order[problem.first[t]]])
    if solve_stage(lp, pool, t, row) == OPTIMAL:
        drop_slack_rows(lp)
    else:
        open_stage(lp, problem, t)
