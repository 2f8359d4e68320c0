"""The style of plots: sized for the page of a paper, in colours that everyone can tell apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from files import replacing

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "sddp",
}
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "0.25"
WIDTH_IN = 7.2
DOTS_PER_INCH = 160


@contextmanager
def figure_of(path: Path, rows: int, columns: int, height_in: float) -> Iterator[tuple[Any, Any]]:
    """Give a figure and its array of axes; write it to `path` when the block ends."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(WIDTH_IN, height_in), layout="constrained", squeeze=False
        )
        try:
            yield figure, axes
            with replacing(path) as file:
                figure.savefig(file, dpi=DOTS_PER_INCH, format=path.suffix[1:])
        finally:
            plt.close(figure)


def suffix_problem(program: str, path: Path | None) -> list[str]:
    """Return a list with a sentence if the file name of a plot has an unknown ending, else []."""
    if path is None or path.suffix in (".png", ".pdf", ".svg"):
        return []
    return [f"{program}: error: --plot {path} must end in .png, .pdf or .svg"]
