"""Many ranks on few cores: start, memory, each collective, and how such a job ends.

    python -m bench.studies many [-n 64] [--write]

Our ranks and those of MPI libraries outnumber the cores of this machine by far. Collectives are
timed in jobs that hold our communicator and that of the library, which take turns block by block.
Start and end are timed in jobs of their own, as a user starts them: `cobre-comm run`, or the
library's `mpiexec` and mpi4py. There, a rank is killed by SIGKILL, or Ctrl-C is sent, while all
ranks reduce without a pause. With --write the tables go to docs/benchmarks/many.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil

from bench.cases.starting import MPI_BEGIN, OUR_BEGIN, mpi_start, our_start
from bench.jobs import run_job
from bench.peers import LIBRARIES
from bench.plan import OURS, PEER, Job, Options
from bench.ranks.timing import measure
from bench.ranks.work import Case, Work
from bench.ranks.world import MpiWorld
from bench.report.text import NONE, filled, number, table
from cobre_comm.testing import RanksFailed

RANKS = (64,)
PEERS = ("openmpi", "mpich")
CASES = [
    Case("barrier", "barrier"),
    Case("allreduce 32 B", "sum", 32),
    Case("allreduce 512 KiB", "sum", 512 * 1024),
    Case("allgatherv 4 KiB a rank", "allgatherv", 4096),
    Case("allgatherv 200 kB a rank", "allgatherv", 200_000),
    Case("broadcast 10 kB", "broadcast", 10_000),
    Case("broadcast 1 MB", "broadcast", 1_000_000),
    Case("broadcast 8 MiB", "broadcast", 8 * 2**20),
]
HOW_LONG = Options(rounds=5, block_s=0.05, most_s=15.0)
START_LIMIT_S, END_LIMIT_S = 300, 60  # the start and the end of a job may take this long
SHOWN = 300  # the most characters of a failure that are shown
JOB_LIMIT_S = 400  # for a job that times all collectives
TABLES = ("life", "collectives")
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "many.md"

REDUCES = """
import json, os, sys, time
import numpy as np
import psutil
{begin}
own = psutil.Process()
facts = np.zeros((size, 3))
facts[rank] = os.getpid(), own.memory_full_info().pss, own.num_fds()
everyone = np.zeros_like(facts)
reduce(facts, everyone)
if rank == 0:
    print("ready", json.dumps(everyone.tolist()), flush=True)
send, recv = np.ones(4), np.zeros(4)
try:
    while True:
        reduce(send, recv)
except Exception:
    if rank == 0:
        print("an error", flush=True)
    raise
"""
FACTS = (
    "start, s", "PSS of a rank, MB", "descriptors of rank 0",
    "from kill -9 to an error on rank 0, s", "from kill -9 to the end, s", "lines of output",
    "from Ctrl-C to the end, s", "lines of output then",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="many", description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, nargs="+", default=list(RANKS), dest="ranks")
    parser.add_argument("--only", choices=TABLES, help="one of the two tables")
    parser.add_argument("--write", action="store_true", help=f"write to {PAGE.name}")
    arguments = parser.parse_args()
    for ranks in arguments.ranks:
        for name in [arguments.only] if arguments.only else TABLES:
            text = {"life": lives, "collectives": collectives}[name](ranks)
            print(f"\n{ranks} ranks\n\n{text}", flush=True)
            if arguments.write:
                mine = partial(_mine, f"{ranks} {name}", text)
                page = filled(PAGE.read_text(), mine)
                if text not in page:
                    raise ValueError(f"{PAGE} has no place for {ranks} {name}")
                PAGE.write_text(page)


def _mine(wanted: str, text: str, kind: str, name: str, _: str) -> str | None:
    return text if (kind, name) == ("many", wanted) else None


def collectives(ranks: int) -> str:
    """Return the table of collectives: ours and the library's take turns in one job."""
    columns = [samples_beside(peer, ranks) for peer in PEERS]
    rows = []
    for case in CASES:
        cells = []
        for taken in columns:
            if case.label in taken:
                ours, theirs = (statistics.median(taken[case.label][s]) for s in ("shm", PEER))
                cells += [number(1e3 * ours), number(1e3 * theirs), number(ours / theirs)]
            else:
                cells += [NONE] * 3
        rows.append([case.label, *cells])
    header = [word for peer in PEERS for word in (OURS, LIBRARIES[peer], "ratio")]
    return table(["ms", *header], rows)


def samples_beside(peer: str, ranks: int) -> dict[str, dict[str, list[float]]]:
    """Return the samples of each case that a job has measured before its end.

    Crowded ranks of a library may take minutes for a case. They may also hang in MPI_Finalize, so a
    job is aborted when all is measured.
    """
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
        file = Path(folder, "samples")
        file.touch()
        problem = ""
        try:
            run_job(Job(ranks, peer), time_collectives, str(file), within_s=JOB_LIMIT_S)
        except RanksFailed as error:
            problem = str(error)[:SHOWN]
        taken = dict(map(json.loads, file.read_text().splitlines()))
    if len(taken) < len(CASES):
        print(f"{ranks} ranks beside {peer} have measured {list(taken)}: {problem}", flush=True)
    return taken


def time_collectives(comm, file: str) -> None:
    """On rank 0, write a line with the samples of each case by side; verify all results."""
    del comm
    world = MpiWorld()
    for case in CASES:
        works = {name: Work(case, world.side(name), world, sets=1) for name in ("shm", PEER)}
        timed = {name: work.timed for name, work in works.items()}
        samples = measure(timed, world.slowest, HOW_LONG)["samples_s"]
        for work in works.values():
            work.verify()
        if world.rank == 0:
            with Path(file).open("a") as lines:
                lines.write(json.dumps([case.label, samples]) + "\n")
    world.slowest(0.0)
    world.comm.Abort(1)


def lives(ranks: int) -> str:
    """Return the table of how jobs start and end."""
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
        columns = {OURS: life(*our_start(ranks, folder), OUR_BEGIN, folder)}
        for peer in PEERS:
            columns[LIBRARIES[peer]] = life(*mpi_start(peer, ranks, folder), MPI_BEGIN, folder)
    rows = [[fact, *told] for fact, *told in zip(FACTS, *columns.values(), strict=True)]
    return table([f"{ranks} ranks", *columns], rows)


def life(words: Sequence[str], environ: Mapping[str, str], begin: str, folder: str) -> list[str]:
    """Return the facts of a job: its start, its end after SIGKILL to a rank, and after Ctrl-C."""
    program = Path(folder, "reduces.py")
    program.write_text(REDUCES.format(begin=begin))
    with Running([*words, str(program)], environ, folder) as job:
        facts = job.facts()
        job.strike(int(facts[len(facts) // 2][0]), signal.SIGKILL)
        killed = [job.told_s(), *job.end()]
        start_s = job.start_s
    with Running([*words, str(program)], environ, folder) as job:
        job.facts()
        job.strike(job.process.pid, signal.SIGINT)
        interrupted = job.end()
    pss = sum(fact[1] for fact in facts) / len(facts) / 1e6
    return [number(start_s), number(pss), f"{facts[0][2]:.0f}", *killed, *interrupted]


class Running:
    """A job that writes its output to a file; when the block ends, all processes of the job end."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], folder: str) -> None:
        self._output = Path(folder, "output")
        self._began = time.monotonic()
        with self._output.open("wb") as file:
            self.process = subprocess.Popen(
                words, env=environ, stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )
        self._known: list[psutil.Process] = []
        self._struck = 0.0

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._known:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _await(self, word: str, limit_s: float) -> str:
        """Return the rest of the first line with a word; "" if the job has ended, or is late."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            ended = self.process.poll() is not None
            found = re.search(rf"{word}(.*)\n", self._output.read_text(errors="replace"))
            if found:
                return found[1] or word
            if ended:
                break
            time.sleep(0.01)
        return ""

    def facts(self) -> list[list[float]]:
        """Return the process id, the bytes of PSS and the number of descriptors of each rank."""
        facts: list[list[float]] = json.loads(self._await("ready", START_LIMIT_S))
        self.start_s = time.monotonic() - self._began
        self._known = psutil.Process(self.process.pid).children(recursive=True)
        self._known += [psutil.Process(int(pid)) for pid, *_ in facts]
        return facts

    def strike(self, pid: int, number: int) -> None:
        """Send a signal while the ranks reduce."""
        time.sleep(2)
        self._lines = self._count()
        self._struck = time.monotonic()
        os.kill(pid, number)

    def told_s(self) -> str:
        """Return the seconds until rank 0 has its error."""
        told = self._await("an error", END_LIMIT_S)
        return number(time.monotonic() - self._struck) if told else NONE

    def end(self) -> list[str]:
        """Return the seconds until the job has ended, and how many lines it has written."""
        try:
            self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            return [f"> {END_LIMIT_S}", str(self._count() - self._lines)]
        return [number(time.monotonic() - self._struck), str(self._count() - self._lines)]

    def _count(self) -> int:
        return len(self._output.read_text(errors="replace").splitlines())
