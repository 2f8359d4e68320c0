"""The stage problem as arrays for compiled code, in scaled units.

`stage.columns` says which variables and rows the problem has, and in which order.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from case.data import Case

from stage.columns import columns_of, rows_of_case
from stage.units import Units


class Problem(NamedTuple):
    """The case in scaled units; `noise` is in shared memory."""

    a: np.ndarray  # (H + B + E, n) base rows, the same in all stages
    cost: np.ndarray  # (T, n)
    lower: np.ndarray  # (T, n)
    upper: np.ndarray  # (T, n); that of theta is 0 in the last stage
    least: np.ndarray  # (T, E) bounds of the limits
    most: np.ndarray  # (T, E)
    # (n,) for variables without an upper bound: a bound that no optimal dispatch exceeds
    ceiling: np.ndarray
    start: np.ndarray  # (H,) initial volumes
    first: np.ndarray  # (T + 1,) openings of stage t are first[t]:first[t + 1]
    weight: np.ndarray  # (sum of K_t,) probability of each opening
    order: np.ndarray  # (sum of K_t,) the openings of each stage, from dry to wet
    noise: np.ndarray  # (sum of K_t, H + B) inflows, then demand of each bus


def opening_bounds(case: Case) -> np.ndarray:
    """Return `Problem.first`."""
    return np.cumsum([0] + [len(p) for p in case.probabilities]).astype(np.int64)


def opening_row(case: Case, units: Units, index: int) -> np.ndarray:
    """Return the scaled (H + B,) noise of the opening with global number `index`."""
    first = opening_bounds(case)
    t = int(np.searchsorted(first, index, side="right")) - 1
    k = index - first[t]
    water = np.array(case.inflows[t][k]) / units.water
    return np.append(water, np.array(case.demand[t][k]) / units.energy)


def base_rows(case: Case, units: Units) -> np.ndarray:
    """Return `Problem.a`."""
    hydros, at, row = case.hydros, columns_of(case), rows_of_case(case)
    a = np.zeros((row.end, at.end))
    segments = [(h, segment) for h, hydro in enumerate(hydros) for segment in hydro.segments]
    turbines = [(at.turbines + j, h) for j, (h, _) in enumerate(segments)]
    spills = [(at.spill + h, h) for h in range(len(hydros))]
    for h in range(len(hydros)):
        a[h, h] = 1.0
    for column, h in turbines + spills:
        a[h, column] = 1.0
        if hydros[h].downstream >= 0:
            a[hydros[h].downstream, column] = -1.0
    buyers = [h for h, hydro in enumerate(hydros) if hydro.water_cost is not None]
    for i, h in enumerate(buyers):
        a[h, at.bought + i] = -1.0
    for j, (h, segment) in enumerate(segments):
        power = segment.productivity * (units.water[h] / units.energy)
        a[row.energy + segment.bus, at.turbines + j] = power
    fill_energy(case, a)
    limits = [(h, limit) for h, hydro in enumerate(hydros) for limit in hydro.limits]
    for e, (h, limit) in enumerate(limits):
        for column, owner in turbines + (spills if limit.with_spill else []):
            if owner == h:
                a[row.limits + e, column] = 1.0
        a[row.limits + e, at.below + e], a[row.limits + e, at.above + e] = 1.0, -1.0
    return a


def fill_energy(case: Case, a: np.ndarray) -> None:
    """Write to the rows of energy what thermal plants, deficits, lines and excesses add there."""
    at, energy = columns_of(case), rows_of_case(case).energy
    for g, plant in enumerate(case.thermals):
        a[energy + plant.bus, at.thermal + g] = 1.0
    steps = [b for b, bus in enumerate(case.buses) for _ in bus.deficit]
    for i, b in enumerate(steps):
        a[energy + b, at.deficit + i] = 1.0
    for i, line in enumerate(case.lines):
        for column, sign in ((at.forward + i, 1.0), (at.backward + i, -1.0)):
            a[energy + line.source, column], a[energy + line.target, column] = -sign, sign
    dumps = [b for b, bus in enumerate(case.buses) if bus.excess_cost is not None]
    for i, b in enumerate(dumps):
        a[energy + b, at.excess + i] = -1.0


def per_stage(rows: list[list[float]], stages: int) -> np.ndarray:
    """Return a (T, things) array of numbers that `rows` has for each thing.

    The array is a copy in C order, because code is compiled again for an array of another order.
    """
    return np.array(rows).reshape(len(rows), stages).T.copy()


def stage_costs(case: Case, units: Units) -> np.ndarray:
    """Return `Problem.cost`."""
    at, hydros = columns_of(case), case.hydros
    water, energy = np.zeros((case.stages, at.end)), np.zeros((case.stages, at.end))
    water[:, at.spill : at.thermal] = np.array([h.spill_cost for h in hydros]) * units.water
    energy[:, at.thermal : at.deficit] = per_stage([g.cost for g in case.thermals], case.stages)
    energy[:, at.deficit : at.forward] = [step.cost for bus in case.buses for step in bus.deficit]
    energy[:, at.forward : at.excess] = [line.cost for line in case.lines] * 2
    excess = [bus.excess_cost for bus in case.buses if bus.excess_cost is not None]
    energy[:, at.excess : at.bought] = excess
    of_hydro = list(zip(hydros, units.water, strict=True))
    bought = [h.water_cost * unit for h, unit in of_hydro if h.water_cost is not None]
    water[:, at.bought : at.below] = bought
    limits = [(limit, unit) for h, unit in of_hydro for limit in h.limits]
    water[:, at.below : at.above] = [limit.below_cost * unit for limit, unit in limits]
    water[:, at.above : at.end] = [limit.above_cost * unit for limit, unit in limits]
    cost = (water + energy * units.energy) / units.money
    cost *= np.array(case.discount)[:, None]
    cost[:, at.theta] = 1.0
    return cost


def owners_of_segments(case: Case) -> np.ndarray:
    """Return the hydro of each segment."""
    return np.repeat(np.arange(len(case.hydros)), [len(h.segments) for h in case.hydros])


def column_bounds(case: Case, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """Return `Problem.lower` and `Problem.upper`."""
    at, hydros, stages = columns_of(case), case.hydros, case.stages
    lower, upper = np.zeros((stages, at.end)), np.full((stages, at.end), np.inf)
    lower[:, : at.theta] = np.array([h.vmin for h in hydros]) / units.water
    upper[:, : at.theta] = np.array([h.vmax for h in hydros]) / units.water
    upper[stages - 1, at.theta] = 0.0
    turbines = per_stage([s.qmax for h in hydros for s in h.segments], stages)
    upper[:, at.turbines : at.spill] = turbines / units.water[owners_of_segments(case)]
    thermals = slice(at.thermal, at.deficit)
    lower[:, thermals] = per_stage([g.least for g in case.thermals], stages) / units.energy
    upper[:, thermals] = per_stage([g.capacity for g in case.thermals], stages) / units.energy
    steps = per_stage([step.depth for bus in case.buses for step in bus.deficit], stages)
    upper[:, at.deficit : at.forward] = steps / units.energy
    lines = [line.capacity for line in case.lines] + [line.reverse for line in case.lines]
    upper[:, at.forward : at.excess] = per_stage(lines, stages) / units.energy
    return lower, upper


def ceilings(case: Case, units: Units, upper: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return `Problem.ceiling`.

    Spill cannot exceed the water that there is, a deficit cannot exceed the demand, and an excess
    cannot exceed what all plants can give. Water is bought for reservoirs, turbines, limits and
    negative inflows.
    """
    at, ceiling = columns_of(case), np.full(upper.shape[1], np.inf)
    deficit = noise[:, at.theta :].sum(axis=1).max()
    plants = upper[:, at.thermal : at.deficit].sum(axis=1).max() + sum(
        max(s.qmax) * s.productivity / units.energy for h in case.hydros for s in h.segments
    )
    ceiling[at.deficit : at.forward] = deficit
    ceiling[at.excess : at.bought] = plants + deficit
    buyers = [h for h, hydro in enumerate(case.hydros) if hydro.water_cost is not None]
    limited = [h for h, hydro in enumerate(case.hydros) for _ in hydro.limits]
    spilt, bought = water_ceilings(case, units, upper, noise)
    ceiling[at.spill : at.thermal] = spilt
    ceiling[at.bought : at.below] = bought[buyers]
    ceiling[at.below :] = np.tile((spilt + bought)[limited], 2)
    return ceiling


def water_ceilings(
    case: Case, units: Units, upper: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most water that each hydro can spill, and the most that can be bought for it.

    Hydros with the same unit of water are counted together, because no water flows between hydros
    that have different units.
    """
    at, hydros = columns_of(case), case.hydros
    volume, turbined = upper[:, : at.theta], upper[:, at.turbines : at.spill]
    owner, inflow = owners_of_segments(case), noise[:, : at.theta]
    least = np.array([sum(max(limit.least) for limit in h.limits) for h in hydros])
    buys = np.array([h.water_cost is not None for h in hydros])
    spilt, bought = np.zeros(len(hydros)), np.zeros(len(hydros))
    for unit in set(units.water):
        alike = units.water == unit
        rain = inflow[:, alike]
        use = volume[:, alike].sum(axis=1) + turbined[:, alike[owner]].sum(axis=1)
        dry = np.minimum(rain, 0.0).sum(axis=1).min()
        bought[alike] = use.max() - dry + least[alike].sum() / unit
        water = volume[0, alike].sum() + np.maximum(rain, 0.0).sum(axis=1).max()
        spilt[alike] = water + (bought[alike] if buys[alike].any() else 0.0)
    return spilt, bought


def openings_by_water(first: np.ndarray, inflow: np.ndarray) -> np.ndarray:
    """Return `Problem.order`."""
    wet = inflow.sum(axis=1)
    order = [k + f for f, e in pairwise(first) for k in np.argsort(wet[f:e], kind="stable")]
    return np.array(order, np.int64)


def build_problem(case: Case, units: Units, noise: np.ndarray) -> Problem:
    """Return the arrays of `case`; `noise` has the `opening_row` of every opening, in order."""
    lower, upper = column_bounds(case, units)
    limits = [limit for h in case.hydros for limit in h.limits]
    unit = np.repeat(units.water, [len(h.limits) for h in case.hydros])
    first, hydros = opening_bounds(case), len(case.hydros)
    return Problem(
        a=base_rows(case, units),
        cost=stage_costs(case, units),
        lower=lower,
        upper=upper,
        least=per_stage([limit.least for limit in limits], case.stages) / unit,
        most=per_stage([limit.most for limit in limits], case.stages) / unit,
        ceiling=ceilings(case, units, upper, np.array(noise)),
        start=np.array([h.v0 for h in case.hydros]) / units.water,
        first=first,
        weight=np.concatenate([np.array(p) for p in case.probabilities]),
        order=openings_by_water(first, np.array(noise)[:, :hydros]),
        noise=noise,
    )
