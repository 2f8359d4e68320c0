"""The stage problem as arrays for compiled code, in scaled units.

Structural variables, in this order: end volumes v' (H), cost to go theta (1), turbined water of
each segment (Q), spill (H), thermal generation (G), deficit (1). Base rows: water balance of each
hydro (H), demand (1). Volumes and theta come first because cuts are rows over exactly these.

Water, energy and money are each divided by a power of two that brings them near one. Powers of
two make scaling and unscaling exact, so scaled results carry the same bits as unscaled ones.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from case import Case


class Problem(NamedTuple):
    """The case in scaled units; `noise` is filled by `openings.share_openings`."""

    a: np.ndarray  # (H + 1, n) base rows, the same in all stages
    cost: np.ndarray  # (T, n)
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,) theta's is set to 0 in the last stage
    ceiling: np.ndarray  # (n,) what no optimal dispatch exceeds, for variables without a bound
    start: np.ndarray  # (H,) initial volumes
    first: np.ndarray  # (T + 1,) openings of stage t are first[t]:first[t + 1]
    weight: np.ndarray  # (sum of K_t,) probability of each opening
    order: np.ndarray  # (sum of K_t,) openings of a stage from dry to wet
    noise: np.ndarray  # (sum of K_t, H + 1) inflows, then demand


class Units(NamedTuple):
    """What one scaled unit is worth in the case's units."""

    water: float
    energy: float
    money: float


def power_of_two(value: float) -> float:
    """Return the power of two nearest to a positive `value`, 1 for zero."""
    return float(2.0 ** np.round(np.log2(value))) if value > 0.0 else 1.0


def typical(values: list[float]) -> float:
    """Return the geometric mean of the positive values, 1 if there are none."""
    positive = [v for v in values if v > 0.0]
    return float(np.exp(np.mean(np.log(positive)))) if positive else 1.0


def choose_units(case: Case) -> Units:
    """Choose units in which volumes, productivities and costs are near one."""
    storage = [h.vmax for h in case.hydros] + [s.qmax for h in case.hydros for s in h.segments]
    water = power_of_two(typical(storage))
    productivity = typical([s.productivity for h in case.hydros for s in h.segments])
    energy = power_of_two(water * productivity)
    prices = [c for g in case.thermals for c in g.cost] + [case.deficit_cost]
    # What spill costs per unit of energy lost: all there is to pay where water is abundant.
    spills = [h.spill_cost for h in case.hydros if h.spill_cost > 0.0]
    if spills:
        prices.append(typical(spills) / productivity)
    return Units(water, energy, power_of_two(typical(prices)) * energy)


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


def base_rows(case: Case, units: Units) -> np.ndarray:
    """Return `Problem.a`."""
    hydros = case.hydros
    count = len(hydros)
    turbines = [(h, s) for h, hydro in enumerate(hydros) for s in hydro.segments]
    spill, thermal = count + 1 + len(turbines), 2 * count + 1 + len(turbines)
    a = np.zeros((count + 1, thermal + len(case.thermals) + 1))
    outflows = [(count + 1 + j, h) for j, (h, _) in enumerate(turbines)]
    outflows += [(spill + h, h) for h in range(count)]
    for h in range(count):
        a[h, h] = 1.0
    for column, h in outflows:
        a[h, column] = 1.0
        if hydros[h].downstream >= 0:
            a[hydros[h].downstream, column] = -1.0
    for j, (_, segment) in enumerate(turbines):
        a[count, count + 1 + j] = segment.productivity * (units.water / units.energy)
    a[count, thermal:] = 1.0
    return a


def build_problem(case: Case, units: Units, noise: np.ndarray) -> Problem:
    """Return the arrays of `case`; `noise` holds `opening_row` of every opening, in order."""
    a = base_rows(case, units)
    count, n, stages = len(case.hydros), a.shape[1], case.stages
    segments = [s for h in case.hydros for s in h.segments]
    spill, thermal = count + 1 + len(segments), 2 * count + 1 + len(segments)
    cost = np.zeros((stages, n))
    cost[:, count] = 1.0
    cost[:, spill:thermal] = np.array([h.spill_cost for h in case.hydros]) * units.water
    for g, plant in enumerate(case.thermals):
        cost[:, thermal + g] = np.array(plant.cost) * units.energy
    cost[:, n - 1] = case.deficit_cost * units.energy
    cost[:, spill:] /= units.money
    lower, upper = np.zeros(n), np.full(n, np.inf)
    lower[:count] = [h.vmin / units.water for h in case.hydros]
    upper[:count] = [h.vmax / units.water for h in case.hydros]
    upper[count + 1 : spill] = [s.qmax / units.water for s in segments]
    upper[thermal : n - 1] = [g.capacity / units.energy for g in case.thermals]
    # No more can be spilled than there is, no more be missing than is asked for.
    ceiling = np.full(n, np.inf)
    water = np.array(noise)[:, :count]
    ceiling[spill:thermal] = upper[:count].sum() + np.maximum(water, 0.0).sum(axis=1).max()
    ceiling[n - 1] = np.array(noise)[:, count].max()
    first = opening_bounds(case)
    wet = np.array(noise)[:, :count].sum(axis=1)
    order = [k + f for f, e in pairwise(first) for k in np.argsort(wet[f:e], kind="stable")]
    return Problem(
        a=a,
        cost=cost,
        lower=lower,
        upper=upper,
        ceiling=ceiling,
        start=np.array([h.v0 for h in case.hydros]) / units.water,
        first=first,
        weight=np.concatenate([np.array(p) for p in case.probabilities]),
        order=np.array(order, np.int64),
        noise=noise,
    )
