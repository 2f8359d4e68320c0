"""Units in which the numbers of a case are near one.

Water, energy and money are each divided by a power of two that brings them near one. With powers of
two, scaling and unscaling are exact, so scaled results have the same bits as unscaled results.

Tolerances of a solver are absolute, for numbers near one. A reservoir that is millions of times
smaller than others would vanish in the tolerances, although its water may be worth as much. So a
cascade has a unit of water of its own. All reservoirs of a cascade have the same unit, because
water flows from one reservoir to the next.
"""

import math
from typing import NamedTuple

import numpy as np
from case.data import Case, Hydro

APART = 10
"""Units of water differ by powers of 2**10: a unit fits sizes within a factor of 32, both ways."""

MOST_APART = 1e11
"""Sizes in a cascade may differ by this factor; with more, bounds show the solver's tolerances."""

MOST_RISE = 1e8
"""A later stage's discount may be larger by this factor: rounding there is then 1e-6 of costs."""


class Units(NamedTuple):
    """The scaled units of each hydro's water, of energy and of money, in units of the case."""

    water: np.ndarray  # (H,)
    energy: float
    money: float


def power_of_two(value: float) -> float:
    """Return the power of two nearest to a positive `value`; for zero, return 1."""
    return float(2.0 ** np.round(np.log2(value))) if value > 0.0 else 1.0


def typical(values: list[float]) -> float:
    """Return the geometric mean of the positive values; 1 if no value is positive."""
    positive = [v for v in values if v > 0.0]
    return float(np.exp(np.mean(np.log(positive)))) if positive else 1.0


def cascades_of(case: Case) -> list[np.ndarray]:
    """Return the numbers of the hydros of each cascade, in which the water of all hydros meets."""
    last = np.arange(len(case.hydros))
    for h in range(len(case.hydros)):
        while case.hydros[last[h]].downstream >= 0:
            last[h] = case.hydros[last[h]].downstream
    return [np.flatnonzero(last == end) for end in np.unique(last)]


def size_of(hydros: list[Hydro]) -> float:
    """Return a typical volume or turbined water of `hydros`; 0 if all are zero."""
    sizes = [h.vmax for h in hydros] + [max(s.qmax) for h in hydros for s in h.segments]
    return typical(sizes) if max(sizes, default=0.0) > 0.0 else 0.0


def water_units(case: Case) -> tuple[float, np.ndarray]:
    """Return the unit of a typical cascade, and `Units.water`."""
    common = power_of_two(size_of(case.hydros))
    units = np.full(len(case.hydros), common)
    for members in cascades_of(case):
        size = size_of([case.hydros[h] for h in members])
        if size > 0.0:
            steps = np.round(np.log2(size / common) / APART)
            units[members] = common * 2.0 ** (APART * steps)
    return common, units


def refuse_sizes(case: Case) -> str:
    """Return why sizes or discounts of `case` are too far apart; "" if they are not."""
    for members in cascades_of(case):
        sizes = [(size_of([case.hydros[h]]), case.hydros[h].name) for h in members]
        sizes = [size for size in sizes if size[0] > 0.0]
        if sizes and (factor := max(sizes)[0] / min(sizes)[0]) > MOST_APART:
            return (
                f"{case.name}: volumes and turbines of {min(sizes)[1]} and {max(sizes)[1]}, which "
                f"are in one cascade, differ by a factor of {factor:.3g}; stage problems are "
                f"accurate up to {MOST_APART:.0e}"
            )
    return refuse_discounts(case)


def refuse_discounts(case: Case) -> str:
    """Return why costs of the stages of `case` cannot be added; "" if they can be added.

    A stage's costs would be lost in the rounding of later costs that count far more. Costs that
    count far less are lost too, but do not matter. Costs that do not count need no accuracy.
    """
    least, first = math.inf, 0
    for stage, factor in enumerate(case.discount):
        if factor > MOST_RISE * least:
            return (
                f"{case.name}: by `discount`, costs of stage {stage} count {factor / least:.3g} "
                f"times as much as those of stage {first}, before it; bounds are accurate up to "
                f"{MOST_RISE:.0e}: bring the two closer"
            )
        if 0.0 < factor < least:
            least, first = factor, stage
    return ""


def choose_units(case: Case) -> Units:
    """Choose units in which volumes, productivities and costs are near one."""
    common, water = water_units(case)
    larger = (water / common).tolist()
    of_hydro = list(zip(case.hydros, larger, strict=True))
    productivity = typical([s.productivity * by for h, by in of_hydro for s in h.segments])
    energy = power_of_two(common * productivity)
    prices = [c for g in case.thermals for c in g.cost]
    prices += [step.cost for bus in case.buses for step in bus.deficit]
    # The cost of spill per unit of lost energy; if water is abundant, there is no other cost.
    spills = [h.spill_cost * by for h, by in of_hydro if h.spill_cost > 0.0]
    if spills:
        prices.append(typical(spills) / productivity)
    return Units(water, energy, power_of_two(typical(prices)) * energy)
