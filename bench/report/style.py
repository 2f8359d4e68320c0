"""How the plots look: one colour and mark for each side, sizes and times as axis labels."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from bench.report.data import Record

INK, GRID, PAPER = "#1a1b1c", "#d9dadb", "#fefefe"

# Okabe and Ito's palette, which the colour-blind can tell apart; a mark each, for print.
SIDES = {
    "cobre_comm": ("#d55e00", "o", "-"),
    "Open MPI": ("#0072b2", "s", "-"),
    "MPICH": ("#009e73", "^", "-"),
    "numba-mpi": ("#cc79a7", "D", "-"),
    "gloo": ("#e69f00", "v", "-"),
    "memcpy": (INK, "", "--"),
    "ping-pong": (INK, "", ":"),
}
SPARE = [("#56b4e9", "P", "-"), ("#8c6bb1", "X", "-"), ("#7f7f7f", "*", "-")]

mpl.rcParams.update(
    {
        "font.size": 9,
        "font.family": "sans-serif",
        "figure.facecolor": PAPER,
        "axes.facecolor": "none",
        "savefig.facecolor": PAPER,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 9.5,
        "axes.titlecolor": INK,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "lines.linewidth": 1.5,
        "lines.markersize": 4,
        "legend.frameon": False,
    }
)


def look(side: str, others: Iterable[str] = ()) -> dict:
    """Return colour, mark and line of a side; ours lies on top."""
    if side not in SIDES:
        near = next((known for known in SIDES if side.startswith(known)), None)
        spare = sorted(set(others) - set(SIDES) | {side})
        told = SIDES[near] if near else SPARE[spare.index(side) % len(SPARE)]
    else:
        told = SIDES[side]
    colour, mark, line = told
    top = side == "cobre_comm"
    return {"color": colour, "marker": mark, "linestyle": line, "zorder": 3 if top else 2}


def in_order(sides: Iterable[str]) -> list[str]:
    """Return ours first, then the known peers, then the others."""
    known = list(SIDES)
    return sorted(sides, key=lambda s: (known.index(s) if s in known else len(known), s))


def size_text(nbytes: float, _position: object = None) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= factor:
            return f"{nbytes / factor:g} {unit}"
    return f"{nbytes:g} B"


def time_text(seconds: float, _position: object = None) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor * 0.9999:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def rate_text(bytes_per_s: float, _position: object = None) -> str:
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_s >= factor * 0.9999:
            return f"{bytes_per_s / factor:.3g} {unit}"
    return f"{bytes_per_s:.3g} B/s"


def size_axis(axes: Axes, sizes: Iterable[float]) -> None:
    """Label powers of two, about six of them."""
    known = sorted(sizes)
    first, last = known[0].bit_length() - 1, (known[-1] - 1).bit_length()
    step = max(1, -(-(last - first) // 5))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([2**n for n in range(first, last + 1, step)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))


def log_axis(axes: Axes, text) -> None:
    """Make the upright axis logarithmic, a label for each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(text))
    axes.yaxis.set_minor_formatter(NullFormatter())


def legend_above(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend for all panels, each name once, in a line above them."""
    found = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    names = in_order(found)
    figure.legend(
        [found[name] for name in names],
        names,
        loc="outside upper left",
        ncols=min(len(names), 6),
        borderpad=0.2,
        handlelength=2.4,
        columnspacing=1.4,
    )


def label_edges(panels, count: int, below: str, beside: str) -> None:
    """Label the lowest panel of each column and the first of each row."""
    columns = panels.shape[1]
    for index, axes in enumerate(panels.flat[:count]):
        if index % columns == 0:
            axes.set_ylabel(beside)
        if index + columns >= count:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)


def series_of(record: Record) -> str:
    """Return the name of its line; our backends other than shm have lines of their own."""
    other = record.ours and record.backend not in (None, "shm")
    return f"{record.side} ({record.backend})" if other else record.side
