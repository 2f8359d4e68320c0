"""The convergence plot: both bounds, and the gap between them, over iterations and over time."""

from pathlib import Path
from typing import Any

import numpy as np
from training.run import Training

from output.style import BLUE, GREY, ORANGE, figure_of

FLOOR = 1e-12
"""Gaps below this are rounding, and are drawn here."""


def save_plot(training: Training, path: Path) -> None:
    """Draw how `training` converged to `path`: bounds above, relative gaps below."""
    trace = training.trace
    iterations = np.arange(1, len(trace) + 1)
    seconds = np.cumsum(trace["wall_ns"]) * 1e-9
    with figure_of(path, 2, 2, 4.8) as (figure, axes):
        for column, x in enumerate((iterations, seconds)):
            _draw_bounds(axes[0, column], x, training)
            _draw_gaps(axes[1, column], x, training)
        for row in axes:
            row[1].sharey(row[0])
            row[1].tick_params(labelleft=False)
        axes[0, 0].set_ylabel("expected cost")
        axes[1, 0].set_ylabel("relative gap")
        axes[1, 0].set_xlabel("iteration")
        axes[1, 1].set_xlabel("seconds")
        axes[0, 1].legend(loc="best")
        axes[1, 1].legend(loc="best")
        ranks = f"{training.ranks} rank{'s' if training.ranks > 1 else ''}"
        figure.suptitle(
            f"{training.case.name}: {training.plan.trajectories} trajectories an iteration, "
            f"{training.backend}, {ranks}",
            fontsize=9,
        )


def _draw_bounds(axes: Any, x: np.ndarray, training: Training) -> None:
    """Draw the lower bound, and the simulated cost with its 95 % band."""
    trace, known = training.trace, training.case.known
    mean, half = trace["mean"], trace["half_width"]
    axes.fill_between(x, mean - half, mean + half, color=ORANGE, alpha=0.2, linewidth=0)
    axes.plot(x, mean, color=ORANGE, linewidth=0.8, label="simulated cost, ± 95 %")
    axes.plot(x, trace["lower_bound"], color=BLUE, label="lower bound")
    if known is not None:
        axes.axhline(known, color=GREY, linestyle="--", linewidth=0.8, label=_name(training))
    # The first iterations know no future: they would press all others into a line.
    late = trace[min(len(trace) // 10, 5) :]
    if len(late):
        low = min(late["lower_bound"].min(), (late["mean"] - late["half_width"]).min())
        high = (late["mean"] + late["half_width"]).max()
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        axes.set_ylim(low - margin, high + margin)


def _draw_gaps(axes: Any, x: np.ndarray, training: Training) -> None:
    """Draw how far the bound is below what was simulated, and below the known optimum."""
    trace, known = training.trace, training.case.known
    upper = trace["mean"] + trace["half_width"]
    axes.set_yscale("log")
    axes.plot(x, relative(upper, trace), color=ORANGE, label="of simulated cost + 95 %")
    if known is not None:
        gap = relative(np.full(len(trace), known), trace)
        axes.plot(x, gap, color=GREY, linestyle="--", label=f"of {_name(training)}")


def relative(upper: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Return the gap between `upper` and the lower bound, as a part of `upper`."""
    gap = (upper - trace["lower_bound"]) / np.maximum(np.abs(upper), 1e-300)
    return np.maximum(gap, FLOOR)


def _name(training: Training) -> str:
    return "known bound" if training.case.known_is_bound else "known optimum"
