"""Record the figures of a run; make the tables and the plot of `docs/benchmarks/cobre.md`.

    python -m bench.cobre.page bench/results/cobre.json
    python -m bench.cobre.page bench/results/stage.json

`python -m bench.report` then writes the tables, each after its mark `<!-- cobre NAME -->`.
"""

import json
import shutil
import statistics
import sys
from itertools import accumulate
from pathlib import Path

from matplotlib import pyplot

from bench.report.style import look
from bench.report.text import NONE, number, table

OURS = "cobre_comm"
DEFAULT = "Cobre, every cut"
ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "recorded"
RUN, STAGE = RECORDED / "cobre.json", RECORDED / "stage.json"
PLOT = ROOT / "docs" / "_static" / "cobre-bounds.svg"
# by hydros: the largest part of Cobre's best time that ours may take on one rank
TARGETS = {20: 0.10, 40: 0.15, 80: 0.4, 160: 0.8}


def name_of(case: dict) -> list[str]:
    """Return the first cells of a row: the sizes of the case, and the number of ranks."""
    size = case["size"]
    return [f"{size['hydros']} x {size['stages']} x {size['openings']}", str(case["ranks"])]


def median(case: dict, way: str, field: str) -> float:
    """Return the median of a figure over the rounds."""
    return statistics.median(run[field] for run in case["runs"][way])


def best_of(case: dict) -> str:
    """Return the way of Cobre that takes the least time in this case."""
    return min((w for w in case["runs"] if w != OURS), key=lambda w: median(case, w, "training_s"))


def ratio_text(ratio: float, limit: float | None) -> str:
    """Return a ratio as text, bold if the ratio is over the limit."""
    bold = "**" if limit is not None and ratio > limit else ""
    return f"{bold}{ratio:.3f}{bold}"


def training_row(case: dict) -> list[str]:
    """Return the seconds of all iterations, ours and Cobre's, and the ratios."""
    ours, best = median(case, OURS, "training_s"), best_of(case)
    default, least = (median(case, way, "training_s") for way in (DEFAULT, best))
    limit = TARGETS.get(case["size"]["hydros"]) if case["ranks"] == 1 else None
    return [
        *name_of(case),
        number(ours),
        number(default),
        f"{number(least)} ({best.removeprefix('Cobre, ')})",
        ratio_text(ours / least, limit),
        number(limit) if limit else NONE,
    ]


def training_table(cases: list[dict]) -> str:
    """Return the table of training at equal iterations."""
    header = [
        "hydros x stages x openings",
        "ranks",
        "ours, s",
        "Cobre, s",
        "best, s",
        "ratio",
        "aim",
    ]
    return table(header, [training_row(case) for case in cases])


def ranks_table(cases: list[dict]) -> str:
    """Return the table of the seconds of two ranks over those of one rank, ours and Cobre's."""
    rows = []
    for one in (case for case in cases if case["ranks"] == 1):
        for two in (c for c in cases if c["size"] == one["size"] and c["ranks"] == 2):
            parts = [
                ratio_text(
                    median(two, way, "training_s") / median(one, way, "training_s"),
                    0.55 if way == OURS and one["size"]["hydros"] >= 20 else None,
                )
                for way in (OURS, DEFAULT)
            ]
            rows.append([name_of(one)[0], *parts])
    return table(["hydros x stages x openings", "ours", "Cobre"], rows)


def seconds_to(run: dict, bound: float) -> float | None:
    """Return the seconds until a run's bound has reached `bound`; None if it never does."""
    reached = zip(run["bounds"], accumulate(run["seconds"]), strict=True)
    return next((seconds for value, seconds in reached if value >= bound), None)


def equal_bound_row(case: dict) -> list[str]:
    """Return iterations and seconds until the bound at which Cobre ends, over the rounds."""
    best, iterations = best_of(case), case["size"]["iterations"]
    ratios, needed = [], []
    for ours, theirs in zip(case["runs"][OURS], case["runs"][best], strict=True):
        bound = theirs["bounds"][-1]
        seconds = seconds_to(ours, bound)
        if seconds is not None:
            ratios.append(seconds / sum(theirs["seconds"]))
            needed.append(sum(value < bound for value in ours["bounds"]) + 1)
    ahead = [
        ours["bounds"][iterations - 1] / theirs["bounds"][-1] - 1.0
        for ours, theirs in zip(case["runs"][OURS], case["runs"][best], strict=True)
    ]
    count = f"{len(ratios)} of {len(ahead)}"
    return [
        *name_of(case),
        ", ".join(f"{100.0 * each:+.2f}" for each in ahead),
        ", ".join(map(str, needed)) or NONE,
        count,
        ratio_text(statistics.median(ratios), None) if ratios else NONE,
    ]


def equal_bound_table(cases: list[dict]) -> str:
    """Return the table of how long training takes until the bound is Cobre's."""
    header = [
        "hydros x stages x openings", "ranks", "our bound over its, %", "our iterations to its",
        "reached", "ratio of seconds",
    ]  # fmt: skip
    return table(header, [equal_bound_row(case) for case in cases])


def problem_table(cases: list[dict]) -> str:
    """Return the table of wall time per stage problem, and of the largest process's memory."""
    rows = []
    for case in (case for case in cases if case["ranks"] == 1):
        cells = []
        for way in (OURS, DEFAULT):
            runs = case["runs"][way]
            each = statistics.median(run["training_s"] / run["solves"] for run in runs)
            cells.append(number(1e6 * each))
        solving = [run["solving_s"] / run["solves"] for run in case["runs"][DEFAULT]]
        cells.append(number(1e6 * statistics.median(solving)))
        cells += [number(median(case, way, "memory_bytes") / 1e6) for way in (OURS, DEFAULT)]
        rows.append([name_of(case)[0], *cells])
    header = [
        "hydros x stages x openings", "ours, µs a problem", "Cobre, µs a problem",
        "of it in HiGHS, µs", "ours, MB", "Cobre, MB",
    ]  # fmt: skip
    return table(header, rows)


def stage_row(measured: dict) -> list[str]:
    """Return a row of the table of one stage problem."""
    ours = statistics.median(measured["ours"]["us"])
    cells = [str(measured["hydros"]), str(measured["cuts"]), number(ours)]
    cells.append(number(measured["ours"]["pivots"]))
    for way in ("all", "lazy"):
        theirs = measured[way]
        us = statistics.median(theirs["us"])
        cells += [f"{number(us)} ({number(us / ours)})", number(theirs["pivots"])]
        cells.append(f"{theirs['difference']:.0e}")
    return cells


def stage_table(measured: list[dict]) -> str:
    """Return the table of one stage problem beside HiGHS."""
    header = ["hydros", "cuts", "ours, µs", "pivots"] + [
        f"{way}{word}"
        for way in ("every cut: ", "lazy: ")
        for word in ("µs (ratio)", "pivots", "difference")
    ]
    return table(header, [stage_row(each) for each in measured])


TABLES = {
    "training": training_table,
    "ranks": ranks_table,
    "bound": equal_bound_table,
    "problem": problem_table,
}


def draw(cases: list[dict], path: Path) -> None:
    """Draw the bound over time for the first round on one rank, with a panel for each case."""
    alone = [case for case in cases if case["ranks"] == 1]
    figure, panels = pyplot.subplots(
        2, -(-len(alone) // 2), figsize=(9.0, 5.2), layout="constrained"
    )
    for case, axes in zip(alone, panels.flat, strict=False):
        ways = {OURS: OURS, DEFAULT: "Cobre, every cut", best_of(case): "Cobre, its best selection"}
        for number_of, (way, label) in enumerate(ways.items()):
            run = case["runs"][way][0]
            style = look(OURS) if way == OURS else look(["", "Open MPI", "MPICH"][number_of])
            axes.plot(list(accumulate(run["seconds"])), run["bounds"], label=label, **style)
        axes.set_xscale("log")
        axes.set_title(f"{name_of(case)[0]}")
        axes.set_xlabel("seconds of training")
        axes.set_ylabel("lower bound")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    figure.savefig(path)
    pyplot.close(figure)


def text_of(name: str) -> str:
    """Return a table of the page, made from what is recorded."""
    if name == "stage":
        return stage_table(json.loads(STAGE.read_text())["measured"])
    return TABLES[name](json.loads(RUN.read_text())["cases"])


def main(paths: list[Path]) -> None:
    """Record the files, and draw the plot from all that is recorded."""
    for path in paths:
        shutil.copy(path, STAGE if "measured" in json.loads(path.read_text()) else RUN)
    draw(json.loads(RUN.read_text())["cases"], PLOT)


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
