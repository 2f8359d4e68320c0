"""Our tcp backend beside Open MPI restricted to its tcp transport, on one machine.

Both communicators live in the same processes, started by Open MPI, and take turns block by block,
so a busy machine disturbs both alike: read the ratios. Buffers rotate, results are verified after
they are timed, and the loopback interface's own counters show that both went through it.

    python bench/tcp_one_machine.py [-n 2 4] [--rounds 15] [--quick] [--bind core] [--json FILE]
                                    [--gloo PYTHON]

Ranks are not bound to cores unless --bind core says so: bound, each rank shares its core with the
kernel's half of its own messages, and our backend would see one usable core. With --gloo, a Python
that has torch, gloo is measured as well, in processes and a run of its own (bench/tcp_gloo.py).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from functools import partial
from pathlib import Path

from tcp_cases import CASES, Case
from tcp_openmpi import DEADLINE_S, MARK, result_of, run_with_openmpi
from tcp_sides import OpenMpi, Ours, our_communicator
from tcp_timing import interface_load, measure, ratio

# From this size on, that a side uses the loopback interface shows clearly in its counters.
VISIBLE_BYTES = 512 * 1024


def communicator(backend: str, world):
    """Return ours; that of another backend tests this script."""
    if backend == "tcp":
        return our_communicator(world, "127.0.0.1")
    from cobre_comm import ShmConfig, create_communicator

    name = world.bcast(f"/cobre-bench-{os.getpid()}", 0)
    return create_communicator(ShmConfig(name=name, rank=world.rank, size=world.size))


def loopback_bytes(case: Case, sides: dict, world, slowest) -> dict[str, float]:
    """Return how many bytes one call of each side sends through the loopback interface."""
    passed = {}
    for name, side in sides.items():
        passed[name] = interface_load(case, side, world.rank, world.size, slowest, "lo")
        if passed[name] < case.nbytes:
            raise AssertionError(f"{case.label}: {name} does not use the loopback interface")
    return passed


def rank_main(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comm = communicator(options.ours, world)
    sides = {"ours": Ours(comm), "theirs": OpenMpi(MPI)}
    slowest = partial(world.allreduce, op=MPI.MAX)
    rows = []
    for case in CASES:
        samples = measure(
            case, sides, world.rank, world.size, slowest, options.rounds, options.block
        )
        row = {"case": case.label, **ratio(samples["ours"], samples["theirs"])}
        row |= {f"{name}_us": statistics.median(taken) * 1e6 for name, taken in samples.items()}
        if case.nbytes >= VISIBLE_BYTES and options.ours == "tcp":
            row["loopback_bytes"] = loopback_bytes(case, sides, world, slowest)
        rows.append(row)
    comm.close()
    if world.rank == 0:
        library = MPI.Get_library_version().splitlines()[0].split(",")[0]
        print(MARK + json.dumps({"ranks": world.size, "peer": library, "rows": rows}))


def run(size: int, options: argparse.Namespace) -> dict:
    words = ["--rank", "--rounds", options.rounds, "--block", options.block, "--ours", options.ours]
    result = run_with_openmpi(__file__, words, size, options.bind)
    return {**result, "bind": options.bind}


def run_gloo(size: int, options: argparse.Namespace) -> dict[str, float]:
    """Return gloo's microseconds by case."""
    script = Path(__file__).with_name("tcp_gloo.py")
    command = [options.gloo, str(script), "-n", str(size), "--rounds", str(options.rounds)]
    command += ["--block", str(options.block)]
    output = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S
    ).stdout
    return result_of(output)["us"]


def show(result: dict) -> None:
    """Print a table that is also Markdown."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    gloo = result.get("gloo_us")
    title = f"{result['ranks']} ranks, medians in us; ratio = ours / {result['peer']} over tcp; "
    title += f"load before {result['load_before']:.1f}"
    table = Table(box=box.MARKDOWN)
    for name in ("", "ours", result["peer"], "ratio", "quartiles"):
        table.add_column(name, justify="left" if name == "" else "right", no_wrap=True)
    for name in ("gloo", "ours / gloo") if gloo else ():
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["rows"]:
        cells = [row["case"], f"{row['ours_us']:.1f}", f"{row['theirs_us']:.1f}"]
        cells += [f"{row['ratio']:.2f}", f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}"]
        if gloo:
            theirs = gloo[row["case"]]
            cells += [f"{theirs:.1f}", f"{row['ours_us'] / theirs:.2f}"]
        table.add_row(*cells)
    console = Console(width=120, soft_wrap=True)
    console.print(title, table, sep="\n\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("-n", type=int, nargs="+", default=[2, 4], dest="sizes", help="numbers of ranks")
    add("--rounds", type=int, help="blocks of each side (default: 15, quick: 5)")
    add("--block", type=float, help="seconds of a block (default: 0.05, quick: 0.01)")
    add("--quick", action="store_true")
    add("--bind", choices=["none", "core"], default="none", help="as prterun's --bind-to")
    add("--gloo", metavar="PYTHON", help="also measure gloo, with this Python")
    add("--json", type=Path, metavar="FILE")
    add("--ours", choices=["tcp", "shm"], default="tcp", help=argparse.SUPPRESS)
    add("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (5 if options.quick else 15)
    options.block = options.block or (0.01 if options.quick else 0.05)
    return options


def main() -> None:
    options = arguments()
    if options.rank:
        rank_main(options)
        return
    results = []
    for size in options.sizes:
        result = run(size, options)
        if options.gloo:
            result["gloo_us"] = run_gloo(size, options)
        show(result)
        results.append(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
