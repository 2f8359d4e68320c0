"""Options that the mpi benchmarks share, and one job for each library and number of ranks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from mpi_start import LIBRARIES, run_with_mpi


def parser_of(description: str, with_ours: bool = True) -> argparse.ArgumentParser:
    """Return a parser of the shared options; those of our backend only where it is measured."""
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("-n", type=int, nargs="+", default=[2, 4], dest="sizes", help="numbers of ranks")
    add("--mpi", choices=LIBRARIES, nargs="+", default=LIBRARIES)
    add("--rounds", type=int, help="blocks of each side (default: 15, quick: 5)")
    add("--block", type=float, help="seconds of a block (default: 0.05, quick: 0.01)")
    add("--quick", action="store_true")
    add("--bind", choices=["none", "core"], default="none", help="as mpiexec's --bind-to")
    add("--only", default="", metavar="WORD", help="only cases with this in their label")
    add("--json", type=Path, metavar="FILE")
    add("--rank", action="store_true", help=argparse.SUPPRESS)
    if with_ours:
        add("--pretend-nodes", metavar="LIST", help="sets COBRE_MPI_PRETEND_NODES")
        add("--ours", choices=["mpi", "shm"], default="mpi", help=argparse.SUPPRESS)
    else:
        parser.set_defaults(pretend_nodes=None, ours=None)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    options.rounds = options.rounds or (5 if options.quick else 15)
    options.block = options.block or (0.01 if options.quick else 0.05)
    return options


def run_jobs(
    script: str,
    options: argparse.Namespace,
    show: Callable[[dict], None],
    more_words: Sequence[object] = (),
) -> None:
    """Run the ranks of each job, show each result, and write all of them if asked to."""
    words = ["--rank", "--rounds", options.rounds, "--block", options.block, *more_words]
    words += ["--only", options.only]
    words += ["--ours", options.ours] if options.ours else []
    results = []
    for size in options.sizes:
        for mpi in options.mpi:
            result = run_with_mpi(script, words, size, mpi, options.bind, options.pretend_nodes)
            show(result)
            results.append(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def describe(result: dict) -> str:
    """Return under which conditions a result was taken."""
    where = f", pretended nodes {result['nodes']}" if result["nodes"] else ""
    bound = ", bound to cores" if result["bind"] == "core" else ""
    load = f"load before {result['load_before']:.1f}"
    return f"{result['ranks']} ranks, {result['mpi']}{where}{bound}; medians in us; {load}"
