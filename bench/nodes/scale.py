"""Write the tables of docs/design/scale.md and docs/benchmarks/nodes.md anew.

    python -m bench.nodes.scale

What was measured on this machine is in measured.json, made by
`python -m bench.nodes --file bench/nodes/measured.json`; all else is computed.
"""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

from bench.nodes import figures
from bench.nodes.figures import Figures, bits_per_s
from bench.nodes.model import (
    HEADERS,
    Nodes,
    allgatherv,
    allreduce,
    barrier,
    broadcast,
    chain,
    iteration,
    ring,
    stripes,
)
from bench.report.text import NONE, number, table

PAGE = Path(__file__).parents[2] / "docs" / "design" / "scale.md"
MEASURED = Path(__file__).with_name("measured.json")
FORMULAS = {
    "barrier": lambda at, nbytes, private: barrier(at),
    "allgatherv": allgatherv,
    "broadcast": broadcast,
    "sum": lambda at, nbytes, private: allreduce(at, nbytes),
    "sddp": lambda at, nbytes, private: iteration(at, private=private),
}
# This machine's: all nodes share two cores, so ranks beyond them wait for their turn.
CORES, SWITCH, ALPHA, MESSAGE = 2, 4e-6, 3e-6, 1e-6
SOCKET, COPY, FOLD = 1.0e9, 6e9, 3e9


def bench_of(nodes: int, ranks: int, rate: str) -> Nodes:
    """Return the nodes of `python -m bench.nodes`, on this machine."""
    turns = max(1.0, nodes * ranks / CORES)
    busy = max(1.0, nodes / CORES)
    return Nodes(
        nodes, ranks, ALPHA * busy, MESSAGE * busy, SWITCH * turns, bits_per_s(rate) / 8,
        SOCKET / busy, COPY / turns, COPY * CORES / nodes, FOLD / busy,
    )  # fmt: skip


def cluster(nodes: int, ranks: int, gbits: float, lanes: int = 1) -> Nodes:
    """Return nodes of a cluster: a core for each rank, memory of a server, TCP of its kernel."""
    return Nodes(
        nodes, ranks, alpha=20e-6, message=2e-6, step=1e-6 if ranks <= 16 else 2e-6,
        link=gbits * 1e9 / 8, socket=2.5e9, copy=8e9, memory=200e9, fold=6e9, lanes=lanes,
    )  # fmt: skip


LAYOUTS = [(16, 1), (16, 64), (256, 128)]
GBITS = [25, 100]


def predictions() -> str:
    """Return the table of predicted times on a cluster, in ms."""
    rows = [
        ("barrier", barrier),
        ("allreduce 32 B", lambda at: allreduce(at, 32)),
        ("allreduce 1 MB", lambda at: allreduce(at, 1e6)),
        ("allreduce 16 MB", lambda at: allreduce(at, 16e6)),
        ("broadcast 64 MB", lambda at: broadcast(at, 64e6)),
        ("allgatherv 64 MB", lambda at: allgatherv(at, 64e6)),
        ("SDDP iteration, 587 MB", iteration),
        ("... into regions", lambda at: iteration(at, private=False)),
        ("... by leaders that fill a cable", lambda at: iteration(_filling(at), private=False)),
        ("ten times that", lambda at: iteration(at, 10.0)),
        ("... into regions", lambda at: iteration(at, 10.0, private=False)),
    ]
    places = [(layout, gbits) for layout in LAYOUTS for gbits in GBITS]
    header = ["ms", *(f"{n} x {k}, {g} Gb/s" for (n, k), g in places)]
    cells = [
        [label, *(number(1e3 * formula(cluster(n, k, g))) for (n, k), g in places)]
        for label, formula in rows
    ]
    return table(header, cells)


def _filling(at: Nodes) -> Nodes:
    return replace(at, socket=at.link)


def limits() -> str:
    """Return the table of the numbers up to which a choice is right, at 25 and 100 Gb/s."""
    rows = []
    for choice, unit, number_of in LIMITS:
        found = [number_of(gbits) for gbits in GBITS]
        rows.append([choice, unit, *(number(each) if each else "never" for each in found)])
    return table(["choice", "is right up to", *(f"{g} Gb/s" for g in GBITS)], rows, 2)


def _last(holds, values) -> float:
    """Return the last value before the first that no longer holds; 0 if all do."""
    before = None
    for value in values:
        if not holds(value):
            return before or value
        before = value
    return 0


def _mesh(gbits: float) -> float:
    """Return the largest number of nodes for which all to all beats log2(nodes) rounds in pairs."""

    def holds(nodes: int) -> bool:
        at = cluster(nodes, 1, gbits)
        return 2 * (nodes - 1) * at.message <= (math.log2(nodes) - 1) * at.alpha

    return _last(holds, range(8, 4096))


def _ring_of_pieces(gbits: float) -> float:
    """Return the largest number of nodes for which the hops of a ring take less than its bytes."""

    def holds(nodes: int) -> bool:
        at = cluster(nodes, 64, gbits)
        return ring(at, 0) <= at.half / at.stream

    return _last(holds, range(2, 4096))


def _chain(gbits: float) -> float:
    """Return the largest number of ranks on each of 16 nodes for which chain beats stripes."""

    def holds(ranks: int) -> bool:
        at = cluster(16, ranks, gbits)
        return chain(at, 16e6) <= stripes(at, 16e6)

    return _last(holds, range(2, 257))


def _folding(gbits: float) -> float:
    """Return the number of ranks whose contributions a leader folds while two payloads pass."""
    at = cluster(16, 1, gbits)
    return 2 * at.fold / at.stream


def _copying(gbits: float) -> float:
    """Return the number of ranks that can copy a payload out while it crosses the cable."""
    at = cluster(16, 1, gbits)
    return at.memory / at.stream


def _eager(gbits: float) -> float:
    """Return the KiB up to which a root that sends to all is faster than the ring."""
    at = cluster(16, 1, gbits)
    return (at.alpha + at.message) * at.stream * (at.nodes - 1) / (at.nodes - 2) / 1024


LIMITS = [
    ("eager broadcast", "KiB", _eager),
    ("mesh: a barrier of all to all", "nodes", _mesh),
    ("staging buffer, for a ring", "nodes", _ring_of_pieces),
    ("chain, with that staging buffer", "ranks a node", _chain),
    ("one leader folds", "ranks a node", _folding),
    ("each rank copies all out", "ranks a node", _copying),
    (
        "one leader, one thread",
        "Gb/s of a cable",
        lambda gbits: cluster(2, 1, gbits).socket * 8e-9 / HEADERS,
    ),
]


def checked() -> str:
    """Return the table of measured times beside those of the formulas, for this machine."""
    measured = json.loads(MEASURED.read_text())["figures"]
    ours = [each for each in measured if each["system"] == "tcp" and not each["delay"]]
    layouts = sorted({(each["rate"], each["nodes"], each["ranks"]) for each in ours})
    labels = list(dict.fromkeys(each["label"] for each in ours))
    rows = []
    for rate, nodes, ranks in layouts:
        cells = [f"{nodes} x {ranks}, {rate}"]
        for label in labels:
            found = [e for e in ours if (e["rate"], e["nodes"], e["ranks"], e["label"])
                     == (rate, nodes, ranks, label)]  # fmt: skip
            cells.append(_beside(found[0], bench_of(nodes, ranks, rate)) if found else NONE)
        rows.append(cells)
    return table(["ms", *labels], rows)


def _beside(figure: dict, at: Nodes) -> str:
    is_private = not figure.get("in_region", False)
    seconds = FORMULAS[figure["operation"]](at, figure["nbytes"], is_private)
    ratio = number(figure["seconds"] / seconds)
    return f"{number(1e3 * figure['seconds'])} / {number(1e3 * seconds)} = {ratio}"


TABLES = {"checked": checked, "predictions": predictions, "limits": limits}


def filled(text: str) -> str:
    """Return the page with its tables made anew."""
    return re.sub(
        r"(<!-- model (\w+) -->\n).*?(<!-- end -->)",
        lambda mark: f"{mark[1]}{TABLES[mark[2]]()}\n{mark[3]}",
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    for page, fill in ((PAGE, filled), (figures.PAGE, Figures(MEASURED).filled)):
        page.write_text(fill(page.read_text()))
        sys.stdout.write(f"{page}\n")


if __name__ == "__main__":
    main()
