"""How long ranks need for uneven items that are shared out in three ways, beside the ideal."""

import json
from pathlib import Path
from statistics import median

from docs.figures.canvas import Canvas

RECORDED = Path(__file__).parents[2] / "bench" / "recorded" / "essentials.json"
WAYS = {
    "equal shares": ("bad", "equal shares"),
    "one by one": ("second", "claimed one by one"),
    "cobre_comm": ("good", "claimed by last cost"),
}
TOP, BASE, WIDTH = 60, 240, 22  # of the bars
MOST = 1.5  # time / the ideal at the top of the figure


def p50_of(run):
    """Return the seconds of a run, by ranks, label and side."""
    figures = [each["extra_info"] for each in run["benchmarks"]]
    return {
        (f["ranks"], f["label"], f["side"]): f["p50_s"]
        for f in figures
        if f["operation"] == "uneven"
    }


def draw():
    """Return the figure."""
    runs = [p50_of(run) for run in json.loads(RECORDED.read_text())["runs"]]
    rows = dict.fromkeys((size, label) for p50 in runs for size, label, _ in p50)
    c = Canvas(760, 290, "Time until the last rank is done / the ideal, for three ways")
    for number, (kind, words) in enumerate(WAYS.values()):
        c.box(150 + 180 * number, 10, 14, 14, kind=kind)
        c.text(172 + 180 * number, 22, words, "small", "start")
    for tenth in range(6):
        y = BASE - (BASE - TOP) * tenth / 10 / (MOST - 1)
        c.line(40, y, 750, y, "line dashed")
        c.text(32, y + 4, f"{1 + tenth / 10:.1f}", "small", "end")
    for panel, ranks in enumerate((2, 4)):
        labels = [label for size, label in rows if size == ranks]
        left = 55 + 360 * panel
        c.text(left + 155, BASE + 42, f"{ranks} ranks", "title")
        for group, label in enumerate(labels):
            x = left + 86 * group
            c.text(x + 1.5 * WIDTH, BASE + 20, label.partition(", ")[2], "small")
            for bar, (side, (kind, _)) in enumerate(WAYS.items()):
                ratio = median(
                    p50[ranks, label, side] / p50[ranks, label, "the ideal"] for p50 in runs
                )
                height = round((BASE - TOP) * (ratio - 1) / (MOST - 1), 1)
                c.box(x + WIDTH * bar, BASE - height, WIDTH - 4, height, kind=kind)
    return c
