"""The plots of the report, as small PNG files: targets, latency, bandwidth, growth."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from PIL import Image

from bench.plan import LIBRARIES, OURS
from bench.report.data import Record, Results, job_order, job_title
from bench.report.growth import per_byte_plot, ranks_plot
from bench.report.style import (
    INK,
    in_order,
    label_edges,
    legend_above,
    log_axis,
    look,
    rate_text,
    series_of,
    size_axis,
    time_text,
)
from bench.report.targets import COLUMNS, Outcome

COLLECTIVES = ["allreduce", "allgatherv", "broadcast"]
MISS = "#c00000"
DPI, COLOURS = 96, 48


def draw(results: Results, grid: dict[str, list[Outcome]], folder: Path) -> dict[str, str]:
    """Write the plots there are figures for; return their file names and captions.

    The folder is this report's alone: plots of another run that are not drawn again are removed.
    """
    plots: dict[str, tuple[Figure | None, str]] = {
        "targets.png": (
            targets_plot(grid),
            "Ratios (dots, with quartiles) and targets (bars). Left of a bar: the target holds.",
        )
    }
    for operation in COLLECTIVES:
        plots[f"latency-{operation}.png"] = (
            size_plot(results, operation, "time per call", lambda r: r.p50, time_text),
            f"Time of one {operation} against its size: median, and shaded up to p99.",
        )
        plots[f"bandwidth-{operation}.png"] = (
            size_plot(results, operation, "received per rank", lambda r: r.bytes_per_s, rate_text),
            f"Bytes that a rank receives in an {operation} per second.".replace(
                "an broadcast", "a broadcast"
            ),
        )
    plots["growth-ranks.png"] = (
        ranks_plot(results),
        "Growth with the number of ranks, all on this machine; dotted: as the number of ranks.",
    )
    plots["growth-bytes.png"] = (per_byte_plot(results), "Time per byte of large allgathervs.")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for name, (figure, _) in plots.items():
        if figure is not None:
            _save(figure, folder / name)
    return {name: caption for name, (figure, caption) in plots.items() if figure is not None}


def _save(figure: Figure, path: Path) -> None:
    """Write a small file: a plot has few colours, and a palette halves its size."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def targets_plot(grid: dict[str, list[Outcome]]) -> Figure | None:
    """Every ratio beside its target, a panel for each column of the table."""
    if not any(cell.value for row in grid.values() for cell in row):
        return None
    figure, panels = plt.subplots(
        1, len(COLUMNS), figsize=(9.6, 4.2), sharey=True, sharex=True, layout="constrained"
    )
    for index, (axes, (ranks, library)) in enumerate(zip(panels, COLUMNS, strict=True)):
        for height, cells in enumerate(grid.values()):
            _target_row(axes, height, cells[index])
        axes.set_title(f"{ranks} ranks, {LIBRARIES[library]}")
        axes.axvline(1, color=INK, linewidth=0.8)
    axes = panels[0]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([0.05, 0.1, 0.2, 0.5, 1, 2, 5]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_yticks(range(len(grid)), list(grid))
    axes.set_ylim(len(grid) - 0.5, -0.5)
    figure.supxlabel(f"time of {OURS} / time of the library", fontsize=9)
    return figure


def _target_row(axes: Axes, height: int, cell: Outcome) -> None:
    axes.plot([cell.limit] * 2, [height - 0.35, height + 0.35], color=INK, linewidth=2.2)
    if cell.value is None:
        return
    colour = look(OURS)["color"] if cell.holds else MISS
    if cell.low is not None:
        axes.plot([cell.low, cell.high], [height] * 2, color=colour, linewidth=1.2)
    mark, size = ("o", 5) if cell.holds else ("X", 7)
    axes.plot(cell.value, height, mark, color=colour, markersize=size, zorder=3)


def size_plot(
    results: Results,
    operation: str,
    quantity: str,
    value: Callable[[Record], float | None],
    text: Callable,
) -> Figure | None:
    """One quantity of a collective against its size, a panel for each job."""
    records = [
        record
        for record in results.find(operation=operation, setting="")
        if value(record) and record.nbytes and record.p50
    ]
    jobs = sorted({r.job for r in records}, key=job_order)
    jobs = [job for job in jobs if len({r.nbytes for r in records if r.job == job}) > 1]
    if not jobs:
        return None
    columns = min(2, len(jobs))
    rows = -(-len(jobs) // columns)
    figure, panels = plt.subplots(
        rows,
        columns,
        figsize=(4.8 * columns, 0.6 + 2.4 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, job in zip(panels.flat, jobs, strict=False):
        _size_panel(axes, [r for r in records if r.job == job], value)
        axes.set_title(job_title(*job))
    for axes in panels.flat[len(jobs) :]:
        axes.set_axis_off()
    size_axis(panels[0, 0], {r.nbytes for r in records if r.job in jobs})
    log_axis(panels[0, 0], text)
    label_edges(panels, len(jobs), f"{operation}: bytes per rank", quantity)
    legend_above(figure, panels.flat)
    return figure


def _size_panel(axes: Axes, records: list[Record], value: Callable) -> None:
    everyone = {series_of(record) for record in records}
    for name in in_order(everyone):
        line = sorted((r for r in records if series_of(r) == name), key=lambda r: r.nbytes)
        sizes = [r.nbytes for r in line]
        shown = look(name, everyone)
        axes.plot(sizes, [value(r) for r in line], label=name, **shown)
        if value(line[0]) == line[0].p50 and all(r.p99 for r in line):
            axes.fill_between(
                sizes, [r.p50 for r in line], [r.p99 for r in line], alpha=0.13,
                color=shown["color"], linewidth=0, zorder=1,
            )  # fmt: skip
