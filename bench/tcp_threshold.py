"""Where the ring begins to beat the star on one machine: for COBRE_TCP_STAR_BYTES.

The ranks hold two communicators, one that sends everything around the ring and one that sends
everything through rank 0, and these take turns block by block.

    python bench/tcp_threshold.py [-n 2 4] [--rounds 9] [--block 0.02] [--json FILE]

Between machines: bench/tcp_hosts.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial
from pathlib import Path

from tcp_cases import Case
from tcp_openmpi import MARK, run_with_openmpi
from tcp_sides import Ours, ring_and_star
from tcp_timing import measure, ratio

KILOBYTES = [4, 8, 16, 32, 64, 128, 256]
OPERATIONS = {"allgatherv": "allgatherv", "broadcast": "broadcast", "allreduce": "sum"}


def rank_main(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = ring_and_star(world, "127.0.0.1")
    sides = {name: Ours(comm) for name, comm in comms.items()}
    place = world.rank, world.size, partial(world.allreduce, op=MPI.MAX)
    rows = []
    for kilobytes in KILOBYTES:
        row: dict = {"kilobytes": kilobytes}
        for name, operation in OPERATIONS.items():
            share = world.size if operation == "allgatherv" else 1
            case = Case(name, operation, kilobytes * 1024 // share // 8 * 8)
            samples = measure(case, sides, *place, options.rounds, options.block)
            row[name] = {side: statistics.median(taken) for side, taken in samples.items()}
            row[name] |= ratio(samples["ring"], samples["star"])
        rows.append(row)
    for comm in comms.values():
        comm.close()
    if world.rank == 0:
        print(MARK + json.dumps({"ranks": world.size, "rows": rows}))


def show(result: dict) -> None:
    """Print a table that is also Markdown."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.MARKDOWN)
    table.add_column("KiB", justify="right", no_wrap=True)
    for name in OPERATIONS:
        for column in (f"{name}, ring", "star", "ratio"):
            table.add_column(column, justify="right", no_wrap=True)
    for row in result["rows"]:
        cells = [str(row["kilobytes"])]
        for name in OPERATIONS:
            cells += [f"{row[name][side] * 1e6:.1f}" for side in ("ring", "star")]
            cells.append(f"{row[name]['ratio']:.2f}")
        table.add_row(*cells)
    title = f"{result['ranks']} ranks, medians in us; KiB of all ranks together for allgatherv; "
    title += f"load before {result['load_before']:.1f}"
    Console(width=190, soft_wrap=True).print(title, table, sep="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("-n", type=int, nargs="+", default=[2, 4], dest="sizes", help="numbers of ranks")
    add("--rounds", type=int, default=9, help="blocks of each side")
    add("--block", type=float, default=0.02, help="seconds of a block")
    add("--json", type=Path, metavar="FILE")
    add("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank_main(options)
        return
    words = ["--rank", "--rounds", options.rounds, "--block", options.block]
    results = [run_with_openmpi(__file__, words, size) for size in options.sizes]
    for result in results:
        show(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
