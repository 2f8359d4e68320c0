"""The plots of the report, as small PNG files: targets, latency, bandwidth, growth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from PIL import Image

from bench.peers import LIBRARIES, PEERS
from bench.plan import FRESH, OURS, SAME
from bench.report.data import Ratio, Record, Results, job_order, job_title
from bench.report.outcomes import Outcome
from bench.report.style import (
    INK,
    PLAIN,
    RATES,
    SIZES,
    TIMES,
    in_order,
    legend_above,
    log_x,
    log_y,
    look,
    ratio_axes,
    text_in,
)
from bench.report.targets import COLUMNS

SHADES = plt.get_cmap("Oranges")
COLLECTIVES = ["allreduce", "allgatherv", "broadcast"]
MISS = "#c00000"
DPI, COLOURS = 96, 48
MIB = 2**20


def draw(results: Results, grid: dict[str, list[Outcome]], folder: Path) -> dict[str, str]:
    """Write the plots for which there are figures; return their file names and captions.

    After that the folder has the plots of this report alone: plots of another run are removed.
    """
    plots: dict[str, tuple[Figure | None, str]] = {
        "targets.png": (
            targets_plot(grid),
            "Ratios (dots, with quartiles, or the span over several runs) and targets (bars). "
            "Left of a bar: the target holds.",
        )
    }
    for name in COLLECTIVES:
        records = results.find(operation=name, setting=FRESH)
        records = [record for record in records if record.beside in LIBRARIES]
        axis = f"{name}: bytes per rank"
        plots[f"latency-{name}.png"] = (
            size_plot(records, axis, "time per call", lambda r: r.p50_s, text_in(TIMES)),
            f"Time of one {name} against its size: median, and shaded up to p99.",
        )
        plots[f"bandwidth-{name}.png"] = (
            size_plot(records, axis, "received per rank", lambda r: r.bytes_per_s, text_in(RATES)),
            f"Bytes per second that a rank receives: {name}.",
        )
    growth = results.find(words=["growth"], setting="")
    plots["growth-ranks.png"] = (
        ranks_plot([r for r in growth if r.label == "barrier"]),
        "A barrier of more and more ranks, all on this machine; dotted: as the number of ranks.",
    )
    large = [r for r in growth if r.bytes >= MIB]
    plots["growth-bytes.png"] = (
        size_plot(large, "allgatherv: bytes of all ranks", "ns per byte", ns_per_byte, None),
        "Time per byte of large allgathervs.",
    )
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    drawn = {name: plot for name, plot in plots.items() if plot[0] is not None}
    for name, (figure, _) in drawn.items():
        save(figure, folder / name)
    return {name: caption for name, (_, caption) in drawn.items()}


def save(figure: Figure, path: Path) -> None:
    """Write a small file: a plot has few colours, so a palette halves the size of the file."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    plt.close(figure)
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def ns_per_byte(record: Record) -> float | None:
    return record.p50_s / record.bytes * 1e9 if record.p50_s else None


def targets_plot(grid: dict[str, list[Outcome]]) -> Figure | None:
    """Every ratio beside its target, with a panel for each column of the table."""
    if not any(cell.value for row in grid.values() for cell in row):
        return None
    figure, panels = plt.subplots(
        1, len(COLUMNS), figsize=(9.6, 4.2), sharey=True, sharex=True, layout="constrained"
    )
    for index, (axes, (ranks, setting)) in enumerate(zip(panels, COLUMNS, strict=True)):
        for height, cells in enumerate(grid.values()):
            _target_row(axes, height, cells[index])
        axes.set_title(job_title(ranks, None, setting or SAME))
        axes.axvline(1, color=INK, linewidth=0.8)
    ratio_axes(panels[0], [0.05, 0.1, 0.2, 0.5, 1, 2, 5], list(grid))
    figure.supxlabel(f"time of {OURS} / time of the fastest library", fontsize=9)
    return figure


def speed_plot(results: Results) -> Figure | None:
    """Our times / those of the fastest MPI: a dot by number of ranks, each of which had a core."""
    beside: dict[tuple[str, int], list[Ratio]] = {}
    for record in results.find(setting="growth, python", side=OURS):
        ratio = record.ratio_to[PEERS[record.beside]]
        beside.setdefault((record.label, record.ranks), []).append(ratio)
    if not beside:
        return None
    found = [(*row, max(all_of, key=lambda ratio: ratio.median)) for row, all_of in beside.items()]
    labels, counts = list(dict.fromkeys(row[0] for row in found)), sorted({n for _, n, _ in found})
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    for number, n in enumerate(counts):
        colour = SHADES(0.3 + 0.7 * number / (len(counts) - 1))
        ratios = {label: ratio for label, ranks, ratio in found if ranks == n}
        heights = [labels.index(label) for label in ratios]
        spans = [(r.low, r.high) if r.runs > 1 else (r.median, r.median) for r in ratios.values()]
        axes.hlines(heights, *zip(*spans, strict=True), color=colour, linewidth=1.2)
        axes.plot(
            [r.median for r in ratios.values()], heights, "o", color=colour, label=f"{n} ranks"
        )
    axes.axvline(1, color=INK, linewidth=0.8)
    ratio_axes(axes, [0.1, 0.2, 0.5, 1, 2], labels)
    axes.set_xlabel(f"time of {OURS} / time of the fastest MPI: left is faster")
    figure.legend(loc="outside upper left", ncols=len(counts))
    return figure


def _target_row(axes: Axes, height: int, cell: Outcome) -> None:
    if cell.limit is not None:
        axes.plot([cell.limit] * 2, [height - 0.35, height + 0.35], color=INK, linewidth=2.2)
    if cell.value is None:
        return
    missed = cell.holds is False
    colour = MISS if missed else look(OURS)["color"]
    axes.plot([cell.low, cell.high], [height] * 2, color=colour, linewidth=1.2)
    mark, size = ("X", 7) if missed else ("o", 5)
    axes.plot(cell.value, height, mark, color=colour, markersize=size, zorder=3)


def size_plot(
    records: Sequence[Record],
    sizes: str,
    quantity: str,
    value: Callable[[Record], float | None],
    labels: FuncFormatter | None,
) -> Figure | None:
    """A quantity by size, with a panel for each job; without labels, the axis begins at 0."""
    shown = [r for r in records if r.bytes and r.p50_s and value(r)]
    jobs = sorted({r.job for r in shown}, key=job_order)
    jobs = [job for job in jobs if len({r.bytes for r in shown if r.job == job}) > 1]
    if not jobs:
        return None
    columns = min(2, len(jobs))
    rows = -(-len(jobs) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.8 * columns, 0.6 + 2.4 * rows), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for axes, job in zip(panels.flat, jobs, strict=False):
        _lines(axes, [r for r in shown if r.job == job], lambda r: r.bytes, value)
        axes.set_title(job_title(*job))
    for axes in panels.flat[len(jobs) :]:
        axes.set_axis_off()
    log_x(panels[0, 0], size_ticks({r.bytes for r in shown if r.job in jobs}), text_in(SIZES))
    if labels:
        log_y(panels[0, 0], labels)
    else:
        panels[0, 0].set_ylim(bottom=0)
    for index, axes in enumerate(panels.flat[: len(jobs)]):
        axes.set_ylabel(quantity if index % columns == 0 else "")
        if index + columns >= len(jobs):
            axes.set_xlabel(sizes)
            axes.tick_params(labelbottom=True)
    legend_above(figure, panels.flat)
    return figure


def size_ticks(sizes: set[int]) -> list[int]:
    """Return about six powers of two that span the sizes."""
    first, last = min(sizes).bit_length() - 1, (max(sizes) - 1).bit_length()
    return [2**n for n in range(first, last + 1, max(1, -(-(last - first) // 5)))]


def _lines(
    axes: Axes,
    records: Sequence[Record],
    x: Callable[[Record], float],
    value: Callable[[Record], float | None],
) -> None:
    """Draw a line for each side; times are shaded up to p99."""
    for side in in_order({r.side for r in records}):
        line = sorted((r for r in records if r.side == side), key=x)
        at = [x(r) for r in line]
        shown = look(side)
        axes.plot(at, [value(r) for r in line], label=side, **shown)
        if value(line[0]) == line[0].p50_s and all(r.p99_s for r in line):
            p50, p99 = [r.p50_s for r in line], [r.p99_s for r in line]
            axes.fill_between(at, p50, p99, alpha=0.13, color=shown["color"], linewidth=0)


def ranks_plot(records: Sequence[Record]) -> Figure | None:
    """Time by number of ranks."""
    ours = sorted((r for r in records if r.ours), key=lambda r: r.ranks)
    if len(ours) < 2:
        return None
    figure, axes = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
    _lines(axes, records, lambda r: r.ranks, lambda r: r.p50_s)
    guide = [ours[0].p50_s * r.ranks / ours[0].ranks for r in ours]
    axes.plot([r.ranks for r in ours], guide, ":", color=look(OURS)["color"], linewidth=1)
    log_x(axes, {r.ranks for r in records}, PLAIN)
    log_y(axes, text_in(TIMES))
    axes.set_xlabel("ranks")
    axes.set_ylabel("time per call")
    legend_above(figure, [axes])
    return figure
