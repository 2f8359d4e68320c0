"""The convergence plot: bound, simulated cost and gap, over iterations and over time.

One iteration simulates few trajectories. So the simulated cost is drawn as the mean over the last
iterations: at most `WINDOW` iterations, and none from the first half.
"""

from pathlib import Path
from typing import Any

import numpy as np
from training.run import Training

from output.style import BLUE, GREY, ORANGE, figure_of

WINDOW = 20
"""The most iterations over which simulated costs are averaged."""

FLOOR = 1e-9
"""Gaps below this are rounding."""


def save_plot(training: Training, path: Path) -> None:
    """Draw the convergence of `training` to `path`: bounds above, relative gaps below."""
    trace = training.trace
    iterations = np.arange(1, len(trace) + 1)
    seconds = np.cumsum(trace["wall_ns"]) * 1e-9
    upper = upper_bound(trace)
    with figure_of(path, 2, 2, 4.6) as (figure, axes):
        for column, x in enumerate((iterations, seconds)):
            _draw_bounds(axes[0, column], x, training, upper)
            _draw_gaps(axes[1, column], x, training, upper)
            axes[1, column].set_xlabel(("iteration", "seconds")[column])
        for row, label in zip(axes, ("expected cost", "relative gap"), strict=True):
            row[0].set_ylabel(label)
            row[1].set_ylim(row[0].get_ylim())
            row[1].tick_params(labelleft=False)
            row[1].legend(loc="upper right")
        ranks = f"{training.ranks} rank{'s' if training.ranks > 1 else ''}"
        figure.suptitle(
            f"{training.case.name}: {training.plan.trajectories} trajectories an iteration, "
            f"{training.backend}, {ranks}",
            fontsize=9,
        )


def upper_bound(trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the last iterations, and the half-width of its 95 % interval.

    If only one trajectory of an iteration counts, the half-width is NaN, and is not drawn.
    """
    mean, half = np.zeros(len(trace)), np.zeros(len(trace))
    for i in range(len(trace)):
        count = max(1, min(WINDOW, (i + 1) // 2))
        last = trace[i + 1 - count : i + 1]
        mean[i] = last["mean"].mean()
        half[i] = np.sqrt(np.square(last["half_width"]).sum()) / count
    return mean, half


def _draw_bounds(
    axes: Any, x: np.ndarray, training: Training, upper: tuple[np.ndarray, np.ndarray]
) -> None:
    """Draw the lower bound, the simulated cost with its interval, and each iteration's cost."""
    trace, (mean, half) = training.trace, upper
    axes.plot(x, trace["mean"], color=ORANGE, alpha=0.4, linewidth=0.6, label="one iteration")
    axes.fill_between(x, mean - half, mean + half, color=ORANGE, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=ORANGE, label="simulated cost, ± 95 %")
    axes.plot(x, trace["lower_bound"], color=BLUE, label="lower bound")
    if training.case.known is not None:
        known = training.case.known
        axes.axhline(known, color=GREY, linestyle="--", linewidth=0.8, label=_name(training))
    # The axis does not show the first iterations: beside these costs all others look like one line.
    late = slice(min(len(trace) // 10, 5), None)
    if len(trace):
        band = np.nan_to_num(half[late])
        low = min(trace["lower_bound"][late].min(), (mean[late] - band).min())
        high = (mean[late] + band).max()
        margin = 0.1 * (high - low) or 0.1 * abs(high) or 1.0
        axes.set_ylim(low - margin, high + margin)


def _draw_gaps(
    axes: Any, x: np.ndarray, training: Training, upper: tuple[np.ndarray, np.ndarray]
) -> None:
    """Draw the relative gaps from the lower bound to the simulated cost and to the known optimum.

    A gap of zero, or a gap that is negative by chance, leaves the plot at the bottom.
    """
    lower, (mean, half) = training.trace["lower_bound"], upper
    lines = [(mean + half, "-", "to simulated cost + 95 %", ORANGE)]
    if training.case.known is not None:
        known = np.full(len(lower), training.case.known)
        lines.append((known, "--", f"to {_name(training)}", GREY))
    gaps = [(top - lower) / np.maximum(np.abs(top), 1e-300) for top, *_ in lines]
    for gap, (_, style, label, color) in zip(gaps, lines, strict=True):
        axes.plot(x, np.maximum(gap, FLOOR / 10), color=color, linestyle=style, label=label)
    shown = np.concatenate([gap[gap > FLOOR] for gap in gaps])
    axes.set_yscale("log")
    axes.minorticks_off()
    if shown.size:
        axes.set_ylim(shown.min() / 3, 3 * shown.max())


def _name(training: Training) -> str:
    return "known bound" if training.case.known_is_bound else "known optimum"
