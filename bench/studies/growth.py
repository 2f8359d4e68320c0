"""How collectives, starts and the SDDP example grow where each rank has a core.

    python -m bench.studies growth [-n 2 4 8 12 16] [--parts python njit sockets starts sddp]
    python -m bench.studies growth --record [--commit COMMIT]

- *python*: collectives over shm from Python, on data written before each call, beside the library.
- *njit*: the same inside @njit on the same buffers, beside numba-mpi.
- *sockets*: a node for each rank, all through the loopback, beside Open MPI over tcp.
- *starts*: seconds and processor seconds of a job of one allreduce, from its command to its end.
- *sddp*: iterations of the example on a random case.

Collectives take turns with the library's in the same processes. What a part measures is a line of
`--file` at once. With `--record` nothing is measured: the figures of that file go to
`bench/recorded/growth.json`, and `python -m bench.report` shows them in
docs/benchmarks/growth.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bench import machine
from bench.cases.starting import MPI_BEGIN, OUR_BEGIN, mpi_start, our_start
from bench.jobs import run_job
from bench.peers import PEERS, require
from bench.plan import FLAT, OURS, PEER, Job, Options
from bench.ranks.collectives import Collective
from bench.ranks.job import take_all
from bench.ranks.njit.loops import NUMBA_MPI, PING_PONG, NjitLoop
from bench.ranks.timing import in_turn
from bench.ranks.work import Case
from bench.recording import extra_info, ratios
from bench.report.text import table
from bench.studies.study import add_notes, note, parser_of, record_notes
from cobre_comm.check.sddp import example_folder
from cobre_comm.testing import RanksFailed

MIB = 2**20
RANKS = (2, 4, 8, 12, 16)
PARTS = ("python", "njit", "sockets", "starts", "sddp")
# Label, operation, bytes: of all ranks together in an allgatherv.
ROWS = [
    ("barrier", "barrier", 0),
    ("allreduce 32 B", "allreduce", 32),
    ("allreduce 4 KiB", "allreduce", 4096),
    ("allreduce 8 MiB", "allreduce", 8 * MIB),
    ("allgatherv 200 kB in all", "allgatherv", 200_000),
    ("allgatherv 12.9 MB in all", "allgatherv", 12_900_000),
    ("broadcast 8 MiB", "broadcast", 8 * MIB),
]
OVER_SOCKETS = ("barrier", "allreduce 32 B", "allreduce 8 MiB", "allgatherv 12.9 MB in all")
PROGRAMS = {"python": "ranks.collectives", "njit": "ranks.njit.loops"}
PROGRAMS["sockets"] = PROGRAMS["python"]
JOB_LIMIT_S = 70
START_LIMIT_S = 60
ONE_ALLREDUCE = """
import numpy as np
{begin}
send, recv = np.arange(4.0), np.empty(4)
reduce(send, recv)
if not np.array_equal(recv, size * send):
    raise SystemExit("a wrong sum")
"""
CASE = {"hydros": 8, "thermals": 6, "stages": 24, "openings": 20, "seed": 1}


def main() -> None:
    parser = parser_of(__doc__, RANKS, rounds=12, block=0.02)
    add_notes(parser, "growth")
    add = parser.add_argument
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    add("--libraries", nargs="+", default=["openmpi", "mpich"], choices=list(PEERS))
    add("--iterations", type=int, default=30, help="of the SDDP example")
    add("--passes", type=int, default=48, help="forward passes of an iteration")
    options = parser.parse_args()
    if options.record:
        record_notes("growth", options, infos_of)
        return
    note(options.file, {"machine": machine.description()})
    for part in options.parts:
        for ranks in options.ranks:
            take(options, part, ranks)


def take(options: argparse.Namespace, part: str, ranks: int) -> None:
    """Measure a part on so many ranks; say what has failed, and go on."""
    try:
        if part == "sddp":
            take_sddp(options, ranks)
        elif part == "starts":
            take_starts(options, ranks)
        else:
            take_collectives(options, part, ranks)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"{part}, {ranks} ranks: {error}", flush=True)


# Collectives


def take_collectives(options: argparse.Namespace, part: str, ranks: int) -> None:
    """Run a job of each library, which takes all rows of a part."""
    how_long = Options(options.rounds, options.block, most_s=4.0)
    for library in options.libraries:
        if part == "sockets" and library != "openmpi":
            continue
        job = Job(ranks, library, PROGRAMS[part], sockets=part == "sockets")
        asked = [measurement(part, ranks, *row) for row in rows_of(part, options.only)]
        args = job.library, job.program, asked, how_long
        load = os.getloadavg()[0]
        try:
            require(library)
            found = run_job(job, take_all, *args, within_s=JOB_LIMIT_S)
        except (RanksFailed, OSError, RuntimeError) as error:
            print(f"{part}, {job}: {str(error)[-2000:]}", flush=True)
            continue
        taken = [
            {"label": label, **each}
            for (label, *_), each in zip(rows_of(part, options.only), found["measurements"],
                                         strict=True)
        ]  # fmt: skip
        note(options.file, {"part": part, "ranks": ranks, "library": library, "load": load,
                            "version": found["library"], "rows": taken})  # fmt: skip
        for row in taken:
            us = {name: 1e6 * statistics.median(s) for name, s in row["samples_s"].items()}
            shown = "  ".join(f"{name}: {each:10.2f}" for name, each in us.items())
            print(f"{part:8} {ranks:3} {library:8} {row['label']:28} us  {shown}", flush=True)


def rows_of(part: str, only: str) -> list[tuple]:
    chosen = [row for row in ROWS if only in row[0]]
    return [row for row in chosen if part != "sockets" or row[0] in OVER_SOCKETS]


def measurement(part: str, ranks: int, label: str, operation: str, nbytes: int):
    """Return what a job takes for a row."""
    share = nbytes // (ranks if operation == "allgatherv" else 1) // 8 * 8
    if part == "njit":
        ball = (PING_PONG,) * (operation == "barrier" and ranks == 2)
        return NjitLoop(operation, share, ("shm", NUMBA_MPI, *ball))
    case = Case(label, "sum" if operation == "allreduce" else operation, share)
    if part == "sockets":
        return Collective(case, (FLAT, PEER))
    return Collective(case, ("shm", PEER), fresh=bool(nbytes))


# Starts


def take_starts(options: argparse.Namespace, ranks: int) -> None:
    """Start jobs of each side by turns, after one of each that fills the caches."""
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
        sides = {OURS: (*our_start(ranks, folder), OUR_BEGIN)}
        for library in options.libraries:
            sides[PEERS[library]] = (*mpi_start(library, ranks, folder), MPI_BEGIN)
        for number, (name, (words, environ, begin)) in enumerate(sides.items()):
            program = Path(folder, f"{number}.py")
            program.write_text(ONE_ALLREDUCE.format(begin=begin))
            sides[name] = partial(job_s, [*words, str(program)], environ)
        load, taken = os.getloadavg()[0], in_turn(sides, options.rounds)
    samples = {
        name: dict(zip(("wall_s", "cpu_s"), map(list, zip(*each, strict=True)), strict=True))
        for name, each in taken.items()
    }
    note(options.file, {"part": "starts", "ranks": ranks, "load": load, "samples": samples})
    for name, each in samples.items():
        wall, cpu = (statistics.median(each[key]) for key in ("wall_s", "cpu_s"))
        print(f"starts   {ranks:3} {name:12} {wall:.3f} s, {cpu:.3f} s of processors", flush=True)


def job_s(words: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds of a job, and those that its processes had a core."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, env=environ, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, timeout=START_LIMIT_S)  # fmt: skip
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# The SDDP example


def take_sddp(options: argparse.Namespace, ranks: int) -> None:
    """Train a case on so many ranks."""
    example = example_folder()
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
        case, out = Path(folder, "case.json"), Path(folder, "out.json")
        sizes = [word for name, n in CASE.items() for word in (f"--{name}", str(n))]
        subprocess.run([sys.executable, example / "generate.py", case, *sizes], check=True)
        for iterations in (1, options.iterations):  # the first one compiles, if it must
            subprocess.run(
                [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks),
                 example / "train.py", case, "--quiet", "--forward-passes", str(options.passes),
                 "--iterations", str(iterations), "--out", out],
                check=True, timeout=JOB_LIMIT_S,
            )  # fmt: skip
        told = json.loads(out.read_text())
    names = ("iterations", "forward_passes", "wall_s", "comm_s", "iteration_s", "cuts_sha256")
    note(options.file, {"part": "sddp", "ranks": ranks, **{name: told[name] for name in names}})
    print(f"sddp     {ranks:3} {sum(told['iteration_s']):.3f} s, {told['cuts_sha256'][:12]}",
          flush=True)  # fmt: skip


# The record


def infos_of(line: dict) -> list[dict]:
    """Return the facts of a line's figures."""
    part = line.get("part")
    if part in PROGRAMS:
        return [info for row in line["rows"] if not row["error"] for info in row_infos(line, row)]
    if part == "starts":
        return [info for name in line["samples"] for info in start_infos(line, name)]
    if part == "sddp":
        return [
            extra_info(line["iteration_s"], label="an SDDP iteration", operation="growth, sddp",
                       ranks=line["ranks"], side=OURS, backend="shm", setting="growth, sddp")
        ]  # fmt: skip
    return []


def row_infos(line: dict, row: dict) -> list[dict]:
    job = Job(line["ranks"], line["library"], sockets=line["part"] == "sockets")
    samples = row["samples_s"]
    label = row["label"] + " in @njit" * (line["part"] == "njit")
    infos = []
    for name, each in samples.items():
        compared = {}
        if name in ("shm", FLAT):
            compared = {job.side_name(n): ratios(each, s) for n, s in samples.items() if n != name}
        infos.append(
            extra_info(each, label=label, operation=f"growth, {line['part']}", ranks=job.ranks,
                       side=job.side_name(name), beside=job.library, calls=row["calls"][name],
                       setting=f"growth, {line['part']}", backend="shm" if name == "shm" else None,
                       ratio_to=compared)
        )  # fmt: skip
    return infos


def start_infos(line: dict, name: str) -> list[dict]:
    """Return the seconds of a start, and the processor seconds as a figure with a unit."""
    told = line["samples"][name]
    others = {n: s for n, s in line["samples"].items() if n != name and name == OURS}
    common = {"operation": "growth, starts", "ranks": line["ranks"], "side": name,
              "setting": "growth, starts"}  # fmt: skip
    return [
        extra_info(told["wall_s"], label="a job of one allreduce", **common,
                   ratio_to={n: ratios(told["wall_s"], s["wall_s"]) for n, s in others.items()}),
        extra_info(told["cpu_s"], label="a job of one allreduce, processor seconds", **common,
                   value=statistics.median(told["cpu_s"]), unit="s"),
    ]  # fmt: skip


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that has rows."""
    if rows:
        print(f"\n{title}\n\n{table(header, rows)}")
