"""Units in which the numbers of a case are near one.

Water, energy and money are each divided by a power of two that brings them near one. Powers of
two make scaling and unscaling exact, so scaled results carry the same bits as unscaled ones.
"""

from typing import NamedTuple

import numpy as np
from case.data import Case


class Units(NamedTuple):
    """One scaled unit of water, energy and money, in the units of the case."""

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
    turbines = [max(s.qmax) for h in case.hydros for s in h.segments]
    storage = [h.vmax for h in case.hydros] + turbines
    water = power_of_two(typical(storage))
    productivity = typical([s.productivity for h in case.hydros for s in h.segments])
    energy = power_of_two(water * productivity)
    prices = [c for g in case.thermals for c in g.cost]
    prices += [step.cost for bus in case.buses for step in bus.deficit]
    # The cost of spill per unit of lost energy, which is the only cost where water is abundant.
    spills = [h.spill_cost for h in case.hydros if h.spill_cost > 0.0]
    if spills:
        prices.append(typical(spills) / productivity)
    return Units(water, energy, power_of_two(typical(prices)) * energy)
