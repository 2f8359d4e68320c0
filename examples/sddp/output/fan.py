"""The plot of a simulation: quantiles of storage and of the spot price over stages."""

from pathlib import Path
from typing import Any

import numpy as np
from simulation.evaluate import Evaluation

from output.style import BLUE, ORANGE, figure_of

BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.3))
"""Two quantiles, and the opacity of the band between them."""


def save_fans(evaluation: Evaluation, path: Path) -> None:
    """Draw quantiles of the total storage and of the spot price to the file `path`."""
    case, table = evaluation.case, evaluation.table
    storage = sum(a for name, a in table.items() if name.startswith("storage_"))
    full = sum(hydro.vmax for hydro in case.hydros)
    start = sum(hydro.v0 for hydro in case.hydros)
    with figure_of(path, 1, 2, 2.8) as (figure, axes):
        left, right = axes[0]
        _draw_fan(left, np.column_stack([np.full(len(storage), start), storage]), 0, BLUE)
        left.set_ylim(0.0, 1.05 * full)
        left.set_ylabel("storage at the end of the stage")
        prices = {name: a for name, a in table.items() if name.startswith("spot_price")}
        if len(prices) == 1:
            _draw_fan(right, table["spot_price"], 1, ORANGE)
        else:
            _draw_medians(right, prices)
        right.set_ylim(bottom=0.0)
        right.set_ylabel("spot price")
        for each in (left, right):
            each.set_xlabel("stage")
            each.xaxis.get_major_locator().set_params(integer=True)
            each.legend(loc="best")
        figure.suptitle(
            f"{case.name}: {len(evaluation.costs)} scenarios {evaluation.source}, policy of "
            f"{evaluation.iterations} iterations",
            fontsize=9,
        )


def _draw_fan(axes: Any, values: np.ndarray, first: int, color: str) -> None:
    """Draw quantiles over scenarios (rows) of each stage (column), numbered from `first`."""
    x = np.arange(first, first + values.shape[1])
    for low, high, alpha in BANDS:
        below, above = np.quantile(values, (low, high), axis=0)
        label = f"{low:.0%} to {high:.0%}"
        axes.fill_between(x, below, above, color=color, alpha=alpha, linewidth=0, label=label)
    axes.plot(x, np.quantile(values, 0.5, axis=0), color=color, label="median")


def _draw_medians(axes: Any, prices: dict[str, np.ndarray]) -> None:
    """Draw the median price of each bus, over scenarios (rows) of each stage (column)."""
    for name, values in prices.items():
        x = np.arange(1, 1 + values.shape[1])
        axes.plot(x, np.median(values, axis=0), label=f"median at {name[len('spot_price_') :]}")
