"""Statistics of the costs of all scenarios, with the same digits for any number of ranks.

A mean is an exact sum over all ranks, rounded once. Quantiles come from the costs themselves, which
all ranks have gathered.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from training.interval import mean_interval

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class CostStatistics:
    """Statistics of the costs of equally likely scenarios.

    `half_width` is that of the 95 % interval of the mean by Student's t; None for one scenario.
    `value_at_risk` is the least cost that at least the part `tail` of the scenarios does not
    exceed; `cvar` is the mean of the worst 1 - `tail` of the scenarios.
    """

    mean: float
    half_width: float | None
    least: float
    largest: float
    quantiles: dict[str, float]
    tail: float
    value_at_risk: float
    cvar: float


def cost_statistics(comm: Any, mine: np.ndarray, costs: np.ndarray, tail: float) -> CostStatistics:
    """Return the statistics of `costs`; this rank has found the costs `mine`.

    The conditional value at risk is that of R. T. Rockafellar and S. Uryasev, J. Risk 2 (2000) 21:
    the value at risk, plus the mean excess over it, divided by 1 - tail.
    """
    count = costs.size
    mean, half_width = mean_interval(comm, mine, count)
    ordered = np.sort(costs)
    value_at_risk = float(ordered[max(math.ceil(tail * count), 1) - 1])
    excess = comm.exact_sum(np.maximum(mine - value_at_risk, 0.0))
    return CostStatistics(
        mean=mean,
        half_width=None if math.isnan(half_width) else half_width,
        least=float(ordered[0]),
        largest=float(ordered[-1]),
        quantiles={f"{q:g}": float(np.quantile(ordered, q)) for q in QUANTILES},
        tail=tail,
        value_at_risk=value_at_risk,
        cvar=value_at_risk + excess / (count * (1.0 - tail)),
    )
