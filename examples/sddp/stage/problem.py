"""The stage problem as arrays for compiled code, in scaled units.

Structural variables, in this order: end volumes v' (H), cost to go theta (1), turbined water of
each segment (Q), spill (H), thermal generation (G), deficit (1). Base rows: water balance of each
hydro (H), demand (1). Volumes and theta come first because cuts are rows over exactly these.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from case.data import Case

from stage.units import Units


class Problem(NamedTuple):
    """The case in scaled units; `noise` lies in shared memory."""

    a: np.ndarray  # (H + 1, n) base rows, the same in all stages
    cost: np.ndarray  # (T, n)
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,) theta's is set to 0 in the last stage
    ceiling: np.ndarray  # (n,) a bound that no optimal dispatch exceeds, for variables without one
    start: np.ndarray  # (H,) initial volumes
    first: np.ndarray  # (T + 1,) openings of stage t are first[t]:first[t + 1]
    weight: np.ndarray  # (sum of K_t,) probability of each opening
    order: np.ndarray  # (sum of K_t,) openings of a stage from dry to wet
    noise: np.ndarray  # (sum of K_t, H + 1) inflows, then demand


def opening_bounds(case: Case) -> np.ndarray:
    """Return `Problem.first`."""
    return np.cumsum([0] + [len(p) for p in case.probabilities]).astype(np.int64)


def opening_row(case: Case, units: Units, index: int) -> np.ndarray:
    """Return the scaled (H + 1,) noise of the opening with global number `index`."""
    first = opening_bounds(case)
    t = int(np.searchsorted(first, index, side="right")) - 1
    k = index - first[t]
    water = np.array(case.inflows[t][k]) / units.water
    return np.append(water, case.demand[t][k] / units.energy)


class Columns(NamedTuple):
    """The first column of each kind of variable; volumes begin at 0."""

    theta: int
    turbines: int
    spill: int
    thermal: int
    deficit: int


def columns_of(case: Case) -> Columns:
    """Return the columns of `case`."""
    hydros = len(case.hydros)
    spill = hydros + 1 + sum(len(h.segments) for h in case.hydros)
    thermal = spill + hydros
    return Columns(hydros, hydros + 1, spill, thermal, thermal + len(case.thermals))


def base_rows(case: Case, units: Units) -> np.ndarray:
    """Return `Problem.a`."""
    hydros, at = case.hydros, columns_of(case)
    count = len(hydros)
    turbines = [(h, s) for h, hydro in enumerate(hydros) for s in hydro.segments]
    a = np.zeros((count + 1, at.deficit + 1))
    outflows = [(at.turbines + j, h) for j, (h, _) in enumerate(turbines)]
    outflows += [(at.spill + h, h) for h in range(count)]
    for h in range(count):
        a[h, h] = 1.0
    for column, h in outflows:
        a[h, column] = 1.0
        if hydros[h].downstream >= 0:
            a[hydros[h].downstream, column] = -1.0
    for j, (_, segment) in enumerate(turbines):
        a[count, at.turbines + j] = segment.productivity * (units.water / units.energy)
    a[count, at.thermal :] = 1.0
    return a


def stage_costs(case: Case, units: Units) -> np.ndarray:
    """Return `Problem.cost`."""
    at = columns_of(case)
    cost = np.zeros((case.stages, at.deficit + 1))
    cost[:, at.theta] = 1.0
    cost[:, at.spill : at.thermal] = np.array([h.spill_cost for h in case.hydros]) * units.water
    for g, plant in enumerate(case.thermals):
        cost[:, at.thermal + g] = np.array(plant.cost) * units.energy
    cost[:, at.deficit] = case.deficit_cost * units.energy
    cost[:, at.spill :] /= units.money
    return cost


def build_problem(case: Case, units: Units, noise: np.ndarray) -> Problem:
    """Return the arrays of `case`; `noise` holds `opening_row` of every opening, in order."""
    at = columns_of(case)
    lower, upper = np.zeros(at.deficit + 1), np.full(at.deficit + 1, np.inf)
    lower[: at.theta] = [h.vmin / units.water for h in case.hydros]
    upper[: at.theta] = [h.vmax / units.water for h in case.hydros]
    upper[at.turbines : at.spill] = [s.qmax / units.water for h in case.hydros for s in h.segments]
    upper[at.thermal : at.deficit] = [g.capacity / units.energy for g in case.thermals]
    # Spill cannot exceed the water that there is, nor a deficit the demand.
    ceiling = np.full(at.deficit + 1, np.inf)
    inflow, demand = np.array(noise)[:, :-1], np.array(noise)[:, -1]
    water = upper[: at.theta].sum() + np.maximum(inflow, 0.0).sum(axis=1).max()
    ceiling[at.spill : at.thermal], ceiling[at.deficit] = water, demand.max()
    first, wet = opening_bounds(case), inflow.sum(axis=1)
    order = [k + f for f, e in pairwise(first) for k in np.argsort(wet[f:e], kind="stable")]
    return Problem(
        a=base_rows(case, units),
        cost=stage_costs(case, units),
        lower=lower,
        upper=upper,
        ceiling=ceiling,
        start=np.array([h.v0 for h in case.hydros]) / units.water,
        first=first,
        weight=np.concatenate([np.array(p) for p in case.probabilities]),
        order=np.array(order, np.int64),
        noise=noise,
    )
