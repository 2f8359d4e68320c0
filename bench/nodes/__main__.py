"""Collectives between nodes: ours, an earlier version, Open MPI over tcp, and the least bytes.

    python -m bench.nodes [--nodes 2 3] [--ranks 1 2 4] [--rate 1gbit] [--before OTHER/python]

A node is a set of namespaces on this machine (tests/network/hosts.py; needs root) with an own
/dev/shm; its cable has that rate in each direction. A job of each system takes all rows of a
layout. Figures are kept in a file, in which a later run replaces its own; `bench.nodes.scale`
writes them into the pages.

Variables of this process that begin with COBRE_TCP_ hold for ours, such as
COBRE_TCP_BUFFER_BYTES; keep such figures in a file of their own.

Hosts share the cores of this machine. If these limit a row, and not the cables, a lower rate tells
more.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

from bench.nodes.figures import Figures
from bench.nodes.systems import MPI, PEER, TCP, JobFailed, interpreter, run
from bench.ranks.work import SDDP_BYTES
from tests.network.hosts import Network

BEFORE = "before"
ROWS = [
    # label, operation, bytes, rounds, calls of a round, whether regions hold data and results
    ("allgatherv 64 MB", "allgatherv", 64_000_000, 3, 1, False),
    ("allgatherv 64 MB into regions", "allgatherv", 64_000_000, 3, 1, True),
    ("allreduce 16 MB", "sum", 16_000_000, 3, 1, False),
    ("broadcast 64 MB", "broadcast", 64_000_000, 3, 1, False),
    ("broadcast 64 MB into regions", "broadcast", 64_000_000, 3, 1, True),
    ("barrier", "barrier", 0, 5, 100, False),
    ("allreduce 32 B", "sum", 32, 5, 100, False),
    ("one SDDP iteration", "sddp", SDDP_BYTES, 1, 1, False),
    ("one SDDP iteration into regions", "sddp", SDDP_BYTES, 1, 1, True),
]
FIELDS = ("label", "operation", "nbytes", "rounds", "calls", "in_region")
HAVE_REGIONS = {TCP, MPI}


def arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.nodes", description=__doc__)
    parser.formatter_class = raw
    add = parser.add_argument
    add("--nodes", type=int, nargs="+", default=[2, 3])
    add("--ranks", type=int, nargs="+", default=[1, 2, 4], help="on each node")
    add("--rate", default="1gbit", help="of each cable and direction, as for tc")
    add("--delay", help="of each cable, as for tc: 50us, ...")
    add("--systems", nargs="+", default=[TCP, PEER], choices=[TCP, MPI, PEER, BEFORE])
    add("--before", type=Path, help="an interpreter with an earlier version, for `before`")
    add("--only", default="", metavar="WORD", help="only rows with this in their label")
    add("--once", action="store_true", help="one round of each row: of a system that takes long")
    add("--file", type=Path, default=Path("bench/results/nodes.json"), help="of the figures")
    options = parser.parse_args()
    if BEFORE in options.systems and not options.before:
        parser.error("--systems before needs --before PYTHON")
    return options


def measure(options: argparse.Namespace, figures: Figures) -> None:
    chosen = [dict(zip(FIELDS, row, strict=True)) for row in ROWS if options.only in row[0]]
    if options.once:
        chosen = [{**row, "rounds": 1, "calls": min(row["calls"], 10)} for row in chosen]
    for nodes in options.nodes:
        with Network(nodes) as network:
            for host in network.hosts:
                host.shape(options.rate, options.delay)
            for ranks, system in itertools.product(options.ranks, options.systems):
                python = options.before.absolute() if system == BEFORE else interpreter()
                backend = TCP if system == BEFORE else system
                rows = [row for row in chosen if system in HAVE_REGIONS or not row["in_region"]]
                where = {"nodes": nodes, "ranks": ranks, "rate": options.rate,
                         "delay": options.delay or "", "system": system}  # fmt: skip
                with tempfile.TemporaryDirectory(prefix="cobre-nodes-") as folder:
                    try:
                        told = run(backend, python, network, ranks, rows, Path(folder))
                    except JobFailed as error:
                        print(f"{where}: {error}", flush=True)
                        continue
                for number, row in enumerate(rows):
                    figures.add(where, row, told, number)
                    print(figures.line(where, row["label"]), flush=True)
                figures.write()


def main() -> None:
    options = arguments()
    figures = Figures(options.file)
    measure(options, figures)
    print(figures.table(options.rate, options.delay or ""))


if __name__ == "__main__":
    main()
