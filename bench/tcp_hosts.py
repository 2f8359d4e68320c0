"""Our tcp backend beside Open MPI, between hosts whose cables are as fast as a usual network's.

The hosts are network namespaces on this machine (tests/network/hosts.py; needs root), one rank on
each; their cables are limited to a rate in each direction. The same processes hold two of our
communicators, one that sends everything around the ring and one that sends everything through
rank 0 (the star), and MPI.COMM_WORLD, and these take turns block by block. Buffers rotate, results
are verified after they are timed.

    python bench/tcp_hosts.py [--hosts 4] [--rate 1gbit] [--rounds 7] [--quick] [--json FILE]

A percentage is what the busiest direction of a cable carried per call, divided by what it could
have carried in that time. The cables have no delay, and a burst of 128 kB passes them at once, as
it passes a network card: a short message that is not repeated costs less than the rate says.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from functools import partial
from pathlib import Path

from tcp_cases import Case
from tcp_openmpi import MARK, run_with_openmpi
from tcp_sides import OpenMpi, Ours, ring_and_star
from tcp_timing import interface_load, measure, ratio

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.network.hosts import Network, inside

UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
SIDES = {"ring": "ring", "star": "star", "mpi": "Open MPI"}
VISIBLE_BYTES = 1_000_000  # below, the counters show more of the meetings than of the calls


def cases(size: int) -> list[Case]:
    """Return the cases; those of allgatherv say how much all ranks send together."""
    long = [("allgatherv", 64), ("broadcast", 64), ("allreduce", 16), ("allreduce", 1)]
    rows = [(name, f"{megabytes} MB", megabytes * 1_000_000) for name, megabytes in long]
    rows += [
        (name, f"{kilobytes} kB", kilobytes * 1000)
        for kilobytes in (64, 16, 4)
        for name in ("allgatherv", "broadcast", "allreduce")
    ]
    made = []
    for name, amount, nbytes in rows:
        share = nbytes // size if name == "allgatherv" else nbytes
        operation = "sum" if name == "allreduce" else name
        made.append(Case(f"{name} {amount}", operation, share // 8 * 8))
    return [*made, Case("barrier", "barrier")]


def row_of(case: Case, sides: dict, world, slowest, options: argparse.Namespace) -> dict:
    place = world.rank, world.size, slowest
    samples = measure(case, sides, *place, options.rounds, options.block)
    row: dict = {"case": case.label}
    for name, taken in samples.items():
        row[f"{name}_s"] = statistics.median(taken)
        row[f"ring / {name}"] = ratio(samples["ring"], taken)
        if case.nbytes >= VISIBLE_BYTES:
            row[f"{name}_cable_bytes"] = interface_load(case, sides[name], *place, "eth0")
    return row


def rank_main(options: argparse.Namespace) -> None:
    """On this rank's host already."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = ring_and_star(world, options.coordinator)
    sides = {**{name: Ours(comm) for name, comm in comms.items()}, "mpi": OpenMpi(MPI)}
    slowest = partial(world.allreduce, op=MPI.MAX)
    rows = [row_of(case, sides, world, slowest, options) for case in cases(world.size)]
    for comm in comms.values():
        comm.close()
    if world.rank == 0:
        result = {"hosts": world.size, "rate": options.rate, "rows": rows}
        print(MARK + json.dumps(result), flush=True)


def run(options: argparse.Namespace) -> dict:
    """Make the hosts and start, on the first one, the ranks that then move to their own."""
    with Network(options.hosts) as network:
        for host in network.hosts:
            host.shape(options.rate)
        words = ["--rate", options.rate, "--rounds", options.rounds, "--block", options.block]
        words += ["--coordinator", network.hosts[0].address]
        words += ["--rank-hosts", *(host.name for host in network.hosts)]
        with network.hosts[0].inside():
            return run_with_openmpi(__file__, words, options.hosts, interface="eth0")


def bits_per_s(rate: str) -> float:
    """As ``tc`` reads rates."""
    for unit, factor in UNITS.items():
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise ValueError(f"{rate!r}: use one of {', '.join(UNITS)}")


def show(result: dict) -> None:
    """Print a table that is also Markdown."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.MARKDOWN)
    table.add_column("")
    names = [f"{label}, ms" for label in SIDES.values()]
    names += ["ring / star", "ring / Open MPI", *(f"cable, {one}" for one in SIDES.values())]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["rows"]:
        cells = [f"{row[f'{side}_s'] * 1e3:.2f}" for side in SIDES]
        cells += [f"{row[f'ring / {side}']['ratio']:.2f}" for side in ("star", "mpi")]
        for side in SIDES if "ring_cable_bytes" in row else ():
            could = bits_per_s(result["rate"]) / 8 * row[f"{side}_s"]
            cells.append(f"{row[f'{side}_cable_bytes'] / could:.0%}")
        table.add_row(row["case"], *cells)
    title = f"{result['hosts']} hosts, one rank each, {result['rate']} cables; medians; "
    title += f"load before {result['load_before']:.1f}"
    Console(width=160, soft_wrap=True).print(title, table, sep="\n\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--hosts", type=int, default=4)
    add("--rate", default="1gbit", help="of each cable and direction, as tc writes it")
    add("--rounds", type=int, help="blocks of each side (default: 7, quick: 3)")
    add("--block", type=float, default=0.05, help="seconds of a block, at least one call")
    add("--quick", action="store_true")
    add("--json", type=Path, metavar="FILE")
    add("--coordinator", help=argparse.SUPPRESS)
    add("--rank-hosts", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    bits_per_s(options.rate)
    return options


def main() -> None:
    options = arguments()
    if options.rank_hosts:
        with inside(options.rank_hosts[int(os.environ["PMIX_RANK"])]):
            rank_main(options)
        return
    result = run(options)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
