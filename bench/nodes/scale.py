"""Write the tables of docs/design/scale.md and docs/benchmarks/nodes.md anew.

    python -m bench.nodes.scale

What was measured on this machine is in measured.json, made by
`python -m bench.nodes --file bench/nodes/measured.json`, and in more_nodes.json, made by the same
with `--nodes 4 8 --ranks 1 2 --rate 200mbit --systems tcp --once --only 64`. All else is
simulated, or computed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bench.nodes import figures
from bench.nodes.figures import Figures, least_bytes
from bench.nodes.limits import limits
from bench.nodes.model import HEADERS, Nodes, allgatherv, allreduce, barrier, broadcast, iteration
from bench.nodes.simulate import CUTS_BYTES, OTHERS, seconds_of, seconds_of_other
from bench.nodes.simulation.choices import with_half
from bench.nodes.simulation.network import Network
from bench.nodes.terms import CORES, GBITS, bench_of, cluster, shaped
from bench.ranks.work import SDDP_BYTES
from bench.report.text import NONE, number, table

PAGE = Path(__file__).parents[2] / "docs" / "design" / "scale.md"
MEASURED = Path(__file__).with_name("measured.json")
MORE_NODES = Path(__file__).with_name("more_nodes.json")
FORMULAS = {
    "barrier": lambda at, nbytes, private: barrier(at),
    "allgatherv": allgatherv,
    "broadcast": broadcast,
    "sum": lambda at, nbytes, private: allreduce(at, nbytes),
    "sddp": lambda at, nbytes, private: iteration(at, private=private),
}
LAYOUTS = [(16, 64), (256, 128)]
LANES = {25: 2, 100: 8}  # that fill a cable
PLACES = [
    cluster(16, 64, 25), cluster(16, 64, 25, LANES[25]), cluster(16, 64, 100, LANES[100]),
    cluster(256, 128, 25, LANES[25]), cluster(256, 128, 100, LANES[100]),
]  # fmt: skip
MB = 1_000_000
ROWS = [
    # label, operation, bytes, whether into private memory
    ("barrier", "barrier", 0, True),
    ("allreduce 32 B", "sum", 32, True),
    ("allreduce 16 MB", "sum", 16 * MB, True),
    ("allgatherv 64 MB", "allgatherv", 64 * MB, True),
    ("... into regions", "allgatherv", 64 * MB, False),
    ("SDDP iteration", "sddp", SDDP_BYTES, True),
    ("... into regions", "sddp", SDDP_BYTES, False),
]


def wire(at: Nodes, operation: str, nbytes: int) -> float:
    """Return the seconds that the cables need at least."""
    return least_bytes(operation, nbytes, at.nodes, at.ranks) / (HEADERS * at.link)


def checked() -> str:
    """Return the table of measured times, and how they compare with simulated ones."""
    told = [each for file in (MEASURED, MORE_NODES)
            for each in json.loads(file.read_text())["figures"]]  # fmt: skip
    ours = [each for each in told if each["system"] == "tcp" and not each["delay"]]
    layouts = sorted({(each["rate"], each["nodes"], each["ranks"]) for each in ours})
    rows = []
    for label in dict.fromkeys(each["label"] for each in ours):
        found = {(e["rate"], e["nodes"], e["ranks"]): e for e in ours if e["label"] == label}
        rows.append([label, *(_beside(found.get(layout)) for layout in layouts)])
    return table(["ms", *(f"{n} x {k}, {rate}" for rate, n, k in layouts)], rows)


def _beside(figure: dict | None) -> str:
    if figure is None:
        return NONE
    at = bench_of(figure["nodes"], figure["ranks"], figure["rate"])
    seconds = seconds_of(
        figure["operation"], figure["nbytes"], at, private=not figure.get("in_region", False),
        network=shaped(at), cores=CORES,
    )  # fmt: skip
    return f"{number(1e3 * figure['seconds'])} ({number(figure['seconds'] / seconds)})"


def predictions() -> str:
    """Return the table of simulated times on clusters, in ms."""
    rows = [
        [
            label,
            *(number(1e3 * seconds_of(operation, nbytes, at, private=private)) for at in PLACES),
        ]
        for label, operation, nbytes, private in ROWS
    ]
    ratios = [seconds_of("sddp", 0, at, private=False) / wire(at, "sddp", SDDP_BYTES)
              for at in PLACES]  # fmt: skip
    rows.append(["... / least time of the wire", *map(number, ratios)])
    return table(["ms", *map(_with_lanes, PLACES)], rows)


def _named(at: Nodes) -> str:
    return f"{at.nodes} x {at.ranks}, {at.link * 8e-9:.0f} Gb/s"


def _with_lanes(at: Nodes) -> str:
    return f"{_named(at)}, {at.lanes} lane{'s' * (at.lanes > 1)}"


def formulas() -> str:
    """Return the table of times by formulas, divided by simulated ones."""
    rows = []
    for label, operation, nbytes, private in ROWS:
        times = [seconds_of(operation, nbytes, at, private=private) for at in PLACES]
        ratios = [FORMULAS[operation](with_half(at), nbytes, private) / seconds
                  for at, seconds in zip(PLACES, times, strict=True)]  # fmt: skip
        rows.append([label, *map(number, ratios)])
    return table(["formula / simulation", *map(_with_lanes, PLACES)], rows)


NOISE = [
    ("none", Network()),
    ("messages late by 20 µs, mean", Network(jitter=20e-6, seed=1)),
    ("a rank of each node late by 100 µs, mean", Network(late=100e-6, seed=1)),
    ("a rank of each node late by 1 ms, mean", Network(late=1e-3, seed=1)),
    ("ports with 64 KiB, what is lost comes 5 ms later", Network(port_bytes=2**16, retry=5e-3)),
]  # fmt: skip
DISTURBED = [
    ("barrier", "barrier", 0, True),
    ("allgatherv 128 KB, eager", "allgatherv", 128_000, True),
    ("allgatherv 3.2 MB into regions", "allgatherv", CUTS_BYTES, False),
    ("allreduce 1 MB", "sum", MB, True),
]


def noise() -> str:
    """Return the table of times on a network with noise, in ms."""
    at = cluster(16, 64, 100, LANES[100])
    rows = [
        [name, *(number(1e3 * seconds_of(operation, nbytes, at, private=private, network=network))
                 for _, operation, nbytes, private in DISTURBED)]
        for name, network in NOISE
    ]  # fmt: skip
    return table([f"ms, {_named(at)}, {at.lanes} lanes", *(row[0] for row in DISTURBED)], rows)


def compared() -> str:
    """Return the table of our times beside those of other algorithms, in ms; takes a minute."""
    places = [cluster(n, k, gbits, LANES[gbits]) for n, k in LAYOUTS for gbits in GBITS]
    rows = []
    for operation, name in (("sddp", "SDDP"), ("sum", "allreduce 16 MB")):
        nbytes = SDDP_BYTES if operation == "sddp" else 16 * MB
        rows.append([name, "the wire", *(wire(at, operation, nbytes) for at in places)])
        rows.append([name, "ours", *(seconds_of(operation, nbytes, at) for at in places)])
        if operation == "sddp":
            regions = (seconds_of(operation, nbytes, at, private=False) for at in places)
            rows.append([name, "ours, into regions", *regions])
        for other in OTHERS[operation]:
            times = (seconds_of_other(other, operation, nbytes, at) for at in places)
            rows.append([name, other, *times])
    cells = [[*row[:2], *(number(1e3 * seconds) for seconds in row[2:])] for row in rows]
    return table(["ms", "", *map(_named, places)], cells)


FAST = {"checked": checked, "predictions": predictions, "formulas": formulas, "noise": noise,
        "limits": limits}  # fmt: skip
SLOW = {"compared": compared}


def filled(text: str, tables: dict = FAST) -> str:
    """Return the page with some of its tables made anew."""
    return re.sub(
        r"(<!-- model (\w+) -->\n)(.*?)(<!-- end -->)",
        lambda mark: f"{mark[1]}{tables[mark[2]]()}\n{mark[4]}" if mark[2] in tables else mark[0],
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(), FAST | SLOW))
    figures.PAGE.write_text(Figures(MEASURED).filled(figures.PAGE.read_text()))
    sys.stdout.write(f"{PAGE}\n{figures.PAGE}\n")


if __name__ == "__main__":
    main()
