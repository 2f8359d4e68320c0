"""Our mpi backend beside raw mpi4py, on one machine, in the same processes.

Both communicate over MPI.COMM_WORLD and take turns block by block, so a busy machine disturbs both
alike: read the ratios. Buffers rotate, and results are verified after they are timed.

    python bench/mpi_one_machine.py [-n 2 4] [--mpi openmpi mpich] [--rounds 15] [--quick]
                                    [--pretend-nodes 0,1,2,3] [--fresh] [--bind core]
                                    [--only WORD] [--json FILE]

With --pretend-nodes the ranks pretend to be on these nodes: "0,1,2,3" sends everything through MPI,
"0,0,1,1" goes through shared memory inside a node and through MPI between the two.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial

from mpi_options import describe, parse, parser_of, run_jobs
from mpi_sides import Fresh, our_communicator
from mpi_start import MARK, library_name
from tcp_cases import Case
from tcp_sides import OpenMpi as Mpi4py
from tcp_sides import Ours
from tcp_timing import measure, ratio

# ours / mpi4py may be so much on one machine; a whole iteration has no target of its own.
AS_FAST, FOLDED_SMALL, FOLDED_LARGE = 1.05, 1.1, 1.5

TARGETS = {
    Case("barrier", "barrier"): AS_FAST,
    Case("broadcast 32 B", "broadcast", 32): AS_FAST,
    Case("broadcast 4 KiB", "broadcast", 4096): AS_FAST,
    Case("broadcast 10 kB", "broadcast", 10_000): AS_FAST,
    Case("broadcast 200 kB", "broadcast", 200_000): AS_FAST,
    Case("broadcast 8 MiB", "broadcast", 8 * 2**20): AS_FAST,
    Case("allgatherv 32 B", "allgatherv", 32): AS_FAST,
    Case("allgatherv 4 KiB", "allgatherv", 4096): AS_FAST,
    Case("allgatherv 32 KiB", "allgatherv", 32768): AS_FAST,
    Case("allgatherv 200 kB", "allgatherv", 200_000): AS_FAST,
    Case("allgatherv 12.9 MB", "allgatherv", 12_900_000): AS_FAST,
    Case("allreduce 8 B", "sum", 8): FOLDED_SMALL,
    Case("allreduce 32 B", "sum", 32): FOLDED_SMALL,
    Case("allreduce 4 KiB", "sum", 4096): FOLDED_SMALL,
    Case("allreduce 32 KiB", "sum", 32768): FOLDED_LARGE,
    Case("allreduce 512 KiB", "sum", 524_288): FOLDED_LARGE,
    Case("allreduce 8 MiB", "sum", 8 * 2**20): FOLDED_LARGE,
    Case("one SDDP iteration", "sddp"): None,
}


def rank_main(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comm = our_communicator(options.ours, world)
    sides = {"ours": Ours(comm), "theirs": Mpi4py(MPI)}
    if options.fresh:
        sides = {name: Fresh(side, world.rank) for name, side in sides.items()}
    slowest = partial(world.allreduce, op=MPI.MAX)
    rows = []
    for case in (case for case in TARGETS if options.only in case.label):
        samples = measure(
            case, sides, world.rank, world.size, slowest, options.rounds, options.block
        )
        row = {"case": case.label, "target": TARGETS[case]}
        row |= ratio(samples["ours"], samples["theirs"])
        row |= {f"{name}_us": statistics.median(taken) * 1e6 for name, taken in samples.items()}
        rows.append(row)
    comm.close()
    if world.rank == 0:
        told = {"mpi": library_name(MPI), "ours": options.ours, "fresh": options.fresh}
        print(MARK + json.dumps({**told, "rows": rows}))


def show(result: dict) -> None:
    """Print a table that is also Markdown; a ratio over its target is bold."""
    print(
        f"{describe(result)}; ratio = {result['ours']} / mpi4py"
        f"{'; data written before each call' if result['fresh'] else ''}\n\n"
        "| | ours | mpi4py | ratio | quartiles | target |\n|---|---|---|---|---|---|"
    )
    for row in result["rows"]:
        target = None if result["nodes"] else row["target"]
        over = "**" if target and row["ratio"] > target else ""
        print(
            f"| {row['case']} | {row['ours_us']:.2f} | {row['theirs_us']:.2f} "
            f"| {over}{row['ratio']:.2f}{over} | {row['ratio_low']:.2f} to {row['ratio_high']:.2f} "
            f"| {target or ''} |"
        )
    print()


def main() -> None:
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="write what is sent before each call")
    options = parse(parser)
    if options.rank:
        rank_main(options)
    else:
        run_jobs(__file__, options, show, ["--fresh"] if options.fresh else [])


if __name__ == "__main__":
    main()
