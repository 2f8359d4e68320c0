"""How the plots look: each side has a colour and a mark; axes are labelled by sizes or times."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from bench.plan import OURS

INK, GRID, PAPER = "#1a1b1c", "#d9dadb", "#fefefe"
TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
RATES = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))
SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))

# Okabe and Ito's palette, which colour-blind readers can tell apart; for print, each side has a
# mark.
SIDES = {
    OURS: ("#d55e00", "o", "-"),
    "Open MPI": ("#0072b2", "s", "-"),
    "MPICH": ("#009e73", "^", "-"),
    "Intel MPI": ("#56b4e9", "D", "-"),
}
OTHER = ("#cc79a7", "P", "-")
PLAIN = FuncFormatter(lambda x, _: f"{x:g}")  # labels of an axis without a unit

mpl.rcParams.update(
    {
        "font.size": 9,
        "figure.facecolor": PAPER,
        "axes.facecolor": "none",
        "savefig.facecolor": PAPER,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.5,
        "lines.markersize": 4,
        "legend.frameon": False,
    }
)


def look(side: str) -> dict:
    """Return the colour, mark and line of a side; ours is drawn over the others."""
    colour, mark, line = SIDES.get(side, OTHER)
    return {"color": colour, "marker": mark, "linestyle": line, "zorder": 2 + (side == OURS)}


def in_order(sides: Iterable[str]) -> list[str]:
    """Return our side first, then the known peers, then all others."""
    known = list(SIDES)
    return sorted(sides, key=lambda s: (known.index(s) if s in known else len(known), s))


def text_in(units: tuple[tuple[str, float], ...]) -> FuncFormatter:
    """Return a formatter that labels an axis in the largest unit that fits."""

    def text(value: float, _position: object = None) -> str:
        name, factor = next((u for u in units if value >= u[1] * 0.9999), units[-1])
        return f"{value / factor:.3g} {name}"

    return FuncFormatter(text)


def log_x(axes: Axes, at: Iterable[float], labels: FuncFormatter) -> None:
    """Make the horizontal axis logarithmic, with labels at these values."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted(at)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(labels)


def ratio_axes(axes: Axes, at: Iterable[float], rows: list[str]) -> None:
    """Let the horizontal axis show ratios, with labels at these values; name the rows, top down."""
    log_x(axes, at, PLAIN)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)


def log_y(axes: Axes, labels: FuncFormatter) -> None:
    """Make the vertical axis logarithmic, with a label for each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.yaxis.set_major_formatter(labels)
    axes.yaxis.set_minor_formatter(NullFormatter())


def legend_above(figure: Figure, axes: Iterable[Axes]) -> None:
    """Make one legend for all panels, in a line above the panels; each name is there once."""
    found = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    names = in_order(found)
    figure.legend([found[n] for n in names], names, loc="outside upper left", ncols=6)
