"""Our tcp backend between hosts whose cables are as fast as a usual network's.

The hosts are network namespaces on this machine (tests/network/hosts.py; needs root), their cables
are limited to a rate in each direction. The same ranks hold two communicators, one that sends
everything through rank 0 (the star) and one that sends everything around the ring, and they take
turns block by block. Buffers rotate, results are verified after they are timed.

    python bench/tcp_hosts.py [--hosts 4] [--rate 1gbit] [--rounds 7] [--quick] [--json FILE]

"cable" is what the busiest direction of a cable carried per call, and "of it in use" is that
divided by what it could have carried in the time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from tcp_cases import Case
from tcp_one_machine import MARK, Ours, result_of
from tcp_timing import interface_load, measure, ratio

from cobre_comm import ReduceOp, TcpConfig, create_communicator

ROOT = Path(__file__).parents[1]
DEADLINE_S = 900
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
EVERYTHING = 2**31
PORTS = {"ring": 29500, "star": 29501}
VISIBLE_BYTES = 1_000_000  # below, the counters show more of the meetings than of the calls
STAR_BYTES = {"ring": 0, "star": EVERYTHING}


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


def communicators(rank: int, size: int, coordinator: str) -> dict:
    """Return the two communicators of this rank; the token is in the environment."""
    return {
        name: create_communicator(
            TcpConfig(
                rank=rank,
                size=size,
                coordinator=coordinator,
                port=PORTS[name],
                token=os.environ["COBRE_TCP_TOKEN"],
                star_bytes=STAR_BYTES[name],
            )
        )
        for name in ("ring", "star")
    }


def meeting(comm):
    """Return the largest of a number on all ranks, as a function."""
    largest = np.empty(1)

    def slowest(value: float) -> float:
        comm.allreduce(np.array([float(value)]), largest, ReduceOp.MAX)
        return float(largest[0])

    return slowest


def row_of(case: Case, sides: dict, slowest, options: argparse.Namespace) -> dict:
    place = options.rank, options.hosts, slowest
    samples = measure(case, sides, *place, options.rounds, options.block)
    row = {"case": case.label, **ratio(samples["ring"], samples["star"])}
    for name, taken in samples.items():
        row[f"{name}_s"] = statistics.median(taken)
        if case.nbytes >= VISIBLE_BYTES:
            row[f"{name}_cable_bytes"] = interface_load(case, sides[name], *place, "eth0")
    return row


def rank_main(options: argparse.Namespace) -> None:
    comms = communicators(options.rank, options.hosts, options.coordinator)
    sides = {name: Ours(comm) for name, comm in comms.items()}
    slowest = meeting(comms["star"])
    rows = [row_of(case, sides, slowest, options) for case in cases(options.hosts)]
    for comm in comms.values():
        comm.close()
    if options.rank == 0:
        result = {"hosts": options.hosts, "rate": options.rate, "rows": rows}
        print(MARK + json.dumps(result), flush=True)


def run(options: argparse.Namespace) -> dict:
    """Make the hosts, start a rank on each, return rank 0's result."""
    sys.path.insert(0, str(ROOT))
    from tests.network.hosts import Network

    command = [sys.executable, __file__, "--hosts", str(options.hosts), "--rate", options.rate]
    command += ["--rounds", str(options.rounds), "--block", str(options.block)]
    with Network(options.hosts) as network, contextlib.ExitStack() as ranks:
        command += ["--coordinator", network.hosts[0].address, "--rank"]
        environment = {**os.environ, "COBRE_TCP_TOKEN": secrets.token_hex(16)}
        started = []
        for rank, host in enumerate(network.hosts):
            host.shape(options.rate)
            with host.inside():
                process = subprocess.Popen(
                    [*command, str(rank)], env=environment, stdout=subprocess.PIPE, text=True
                )
            started.append(ranks.enter_context(process))
            ranks.callback(process.kill)
        output, _ = started[0].communicate(timeout=DEADLINE_S)
        codes = [process.wait(DEADLINE_S) for process in started]
    if any(codes):
        raise SystemExit(f"exit codes {codes}")
    return result_of(output)


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
    for name in ("", "ring, ms", "star, ms", "ring / star", "quartiles"):
        table.add_column(name, justify="left" if name == "" else "right", no_wrap=True)
    for name in ("ring: cable, MB", "of it in use", "star: cable, MB", "of it in use"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["rows"]:
        cells = [row["case"], f"{row['ring_s'] * 1e3:.2f}", f"{row['star_s'] * 1e3:.2f}"]
        cells += [f"{row['ratio']:.2f}", f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}"]
        for name in ("ring", "star") if "ring_cable_bytes" in row else ():
            moved = row[f"{name}_cable_bytes"]
            share = moved * 8 / bits_per_s(result["rate"]) / row[f"{name}_s"]
            cells += [f"{moved / 1e6:.1f}", f"{share:.0%}"]
        table.add_row(*cells)
    title = f"{result['hosts']} hosts, one rank each, {result['rate']} cables; medians"
    Console(width=160, soft_wrap=True).print(title, table, sep="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--hosts", type=int, default=4)
    add("--rate", default="1gbit", help="of each cable and direction, as tc writes it")
    add("--rounds", type=int, help="blocks of each kind (default: 7, quick: 3)")
    add("--block", type=float, default=0.05, help="seconds of a block, at least one call")
    add("--quick", action="store_true")
    add("--json", type=Path, metavar="FILE")
    add("--rank", type=int, help=argparse.SUPPRESS)
    add("--coordinator", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    bits_per_s(options.rate)
    if options.rank is not None:
        rank_main(options)
        return
    result = run(options)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
