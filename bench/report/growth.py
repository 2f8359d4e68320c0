"""The plots of growth: with the number of ranks, and per byte with the size."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.plan import LIBRARIES
from bench.report.data import Record, Results, job_order, job_title
from bench.report.style import (
    in_order,
    label_edges,
    legend_above,
    log_axis,
    look,
    series_of,
    size_text,
    time_text,
)


def ranks_plot(results: Results) -> Figure | None:
    """Time of what was measured for growth against the number of ranks."""
    records = [r for r in results.find(words=["growth"], setting="") if r.p50]
    labels = [
        label
        for label in dict.fromkeys(r.label for r in records)
        if len({r.ranks for r in records if r.label == label}) > 1
    ]
    if not labels:
        return None
    columns = min(2, len(labels))
    rows = -(-len(labels) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.8 * columns, 0.6 + 2.8 * rows), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, label in zip(panels.flat, labels, strict=False):
        _ranks_panel(axes, [r for r in records if r.label == label])
        axes.set_title(label)
    for axes in panels.flat[len(labels) :]:
        axes.set_axis_off()
    label_edges(panels, len(labels), "ranks", "time per call")
    legend_above(figure, panels.flat)
    return figure


def _ranks_panel(axes: Axes, records: list[Record]) -> None:
    everyone = {_beside(r) for r in records}
    for name in in_order(everyone):
        line = sorted((r for r in records if _beside(r) == name), key=lambda r: r.ranks)
        shown = look(line[0].side, {r.side for r in records})
        if line[0].ours and line[0].beside == "mpich":
            shown["linestyle"] = "--"
        axes.plot([r.ranks for r in line], [r.p50 for r in line], label=name, **shown)
        if line[0].ours:
            guide = [line[0].p50 * r.ranks / line[0].ranks for r in line]
            axes.plot([r.ranks for r in line], guide, ":", color=shown["color"], linewidth=1)
    ranks = sorted({r.ranks for r in records})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ranks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    log_axis(axes, time_text)


def _beside(record: Record) -> str:
    """Return the side, ours with the library that shared its processes."""
    library = LIBRARIES.get(record.beside or "")
    return f"{record.side}, beside {library}" if record.ours and library else record.side


def per_byte_plot(results: Results) -> Figure | None:
    """Seconds per byte of what was measured for growth with the size."""
    records = [r for r in results.find(words=["growth"], setting="") if r.p50 and r.nbytes >= 2**20]
    if len({r.nbytes for r in records}) < 2:
        return None
    jobs = sorted({r.job for r in records}, key=job_order)
    figure, panels = plt.subplots(
        1, len(jobs), figsize=(4.8 * len(jobs), 3), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, job in zip(panels.flat, jobs, strict=True):
        here = [r for r in records if r.job == job]
        for name in in_order({series_of(r) for r in here}):
            line = sorted((r for r in here if series_of(r) == name), key=lambda r: r.nbytes)
            shown = look(name, {series_of(r) for r in here})
            axes.plot(
                [r.nbytes for r in line], [r.p50 / r.nbytes * 1e9 for r in line], label=name,
                **shown,
            )  # fmt: skip
        axes.set_title(job_title(*job))
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({r.nbytes for r in here})))
        axes.xaxis.set_major_formatter(FuncFormatter(size_text))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
    label_edges(panels, len(jobs), "allgatherv: bytes of all ranks", "ns per byte")
    legend_above(figure, panels.flat)
    return figure
