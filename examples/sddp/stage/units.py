"""Units in which the numbers of a case are near one.

Water, energy and money are each divided by powers of two that bring them near one. Powers of
two make scaling and unscaling exact, so scaled results carry the same bits as unscaled ones.

Tolerances of a solver are absolute, for numbers near one. A reservoir that is millions of times
smaller than others would vanish in them, although its water may be worth as much. So a cascade has
a unit of water of its own. All reservoirs of a cascade have the same unit, as water flows
from one to the next.
"""

from typing import NamedTuple

import numpy as np
from case.data import Case, Hydro

APART = 10
"""Units of water differ by powers of 2**10: a unit fits sizes within a factor of 32, both ways."""


class Units(NamedTuple):
    """One scaled unit of water of each hydro, of energy and of money, in the units of the case."""

    water: np.ndarray  # (H,)
    energy: float
    money: float


def power_of_two(value: float) -> float:
    """Return the power of two nearest to a positive `value`, 1 for zero."""
    return float(2.0 ** np.round(np.log2(value))) if value > 0.0 else 1.0


def typical(values: list[float]) -> float:
    """Return the geometric mean of the positive values, 1 if there are none."""
    positive = [v for v in values if v > 0.0]
    return float(np.exp(np.mean(np.log(positive)))) if positive else 1.0


def cascades_of(case: Case) -> np.ndarray:
    """Return the (H,) last hydro downstream of each: hydros of a cascade have the same."""
    last = np.arange(len(case.hydros))
    for h in range(len(case.hydros)):
        while case.hydros[last[h]].downstream >= 0:
            last[h] = case.hydros[last[h]].downstream
    return last


def sizes_of(hydros: list[Hydro]) -> list[float]:
    """Return volumes, then turbined water."""
    return [h.vmax for h in hydros] + [max(s.qmax) for h in hydros for s in h.segments]


def water_units(case: Case) -> tuple[float, np.ndarray]:
    """Return the unit of a typical cascade, and `Units.water`."""
    common, cascade = power_of_two(typical(sizes_of(case.hydros))), cascades_of(case)
    units = np.full(len(case.hydros), common)
    for last in set(cascade):
        sizes = sizes_of([h for h, c in zip(case.hydros, cascade, strict=True) if c == last])
        if max(sizes) > 0.0:
            steps = np.round(np.log2(typical(sizes) / common) / APART)
            units[cascade == last] = common * 2.0 ** (APART * steps)
    return common, units


def choose_units(case: Case) -> Units:
    """Choose units in which volumes, productivities and costs are near one."""
    common, water = water_units(case)
    larger = (water / common).tolist()
    of_hydro = list(zip(case.hydros, larger, strict=True))
    productivity = typical([s.productivity * by for h, by in of_hydro for s in h.segments])
    energy = power_of_two(common * productivity)
    prices = [c for g in case.thermals for c in g.cost]
    prices += [step.cost for bus in case.buses for step in bus.deficit]
    # The cost of spill per unit of lost energy, which is the only cost where water is abundant.
    spills = [h.spill_cost * by for h, by in of_hydro if h.spill_cost > 0.0]
    if spills:
        prices.append(typical(spills) / productivity)
    return Units(water, energy, power_of_two(typical(prices)) * energy)
