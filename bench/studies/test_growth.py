"""How collectives, starts and the SDDP example grow where each rank has a core.

    make bench-growth

- *python*: collectives over shm from Python, on data written before each call, beside the library.
- *njit*: the same collectives inside @njit, always on the same buffers, beside numba-mpi.
- *over sockets*: a node for each rank, all through the loopback, beside Open MPI over tcp.
- *starts*: seconds of a job of one allreduce, from its command to its end.
- *sddp*: iterations of the example on a random case.

Numbers of ranks that this machine has no cores for are left out.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from bench.cases.grid import figures_of, jobs_of, shared_case
from bench.cases.starting import MPI_BEGIN, OUR_BEGIN, mpi_starts, our_start, process_s
from bench.peers import LIBRARIES
from bench.plan import FLAT, OURS, PEER, Figure
from bench.ranks.collectives import Collective
from bench.ranks.njit.loops import NUMBA_MPI, NjitLoop
from bench.ranks.timing import in_turn
from bench.recording import ratios
from cobre_comm.check.sddp import example_folder
from cobre_comm.system.cores import usable_cores

MIB = 2**20
RANKS = [n for n in (2, 4, 8, 12, 16) if n <= usable_cores()]
# The label, the operation, the bytes: in an allgatherv those of all ranks together.
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
JOB_LIMIT_S, TRAINING_LIMIT_S = 70, 300
ONE_ALLREDUCE = """
import numpy as np
{begin}
send, recv = np.arange(4.0), np.empty(4)
reduce(send, recv)
if not np.array_equal(recv, size * send):
    raise SystemExit("a wrong sum")
"""
CASE = {"hydros": 8, "thermals": 6, "stages": 24, "openings": 20, "seed": 1}
PASSES, ITERATIONS = 48, 30


def collectives():
    for ranks in RANKS:
        cases = [shared_case(*row, ranks) for row in ROWS]
        asked = [Collective(c, ("shm", PEER), fresh=bool(c.nbytes)) for c in cases]
        jobs = jobs_of([ranks], ["openmpi", "mpich"], within_s=JOB_LIMIT_S)
        yield from figures_of(jobs, asked, "growth, python", "growth, python")
        few = [Collective(c, (FLAT, PEER)) for c in cases if c.label in OVER_SOCKETS]
        jobs = jobs_of([ranks], ["openmpi"], sockets=True, within_s=JOB_LIMIT_S)
        yield from figures_of(jobs, few, "growth, over sockets", "growth")


def loops():
    for ranks in RANKS:
        [job] = jobs_of([ranks], ["openmpi"], program="ranks.njit.loops", within_s=JOB_LIMIT_S)
        for label, operation, nbytes in ROWS:
            asked = NjitLoop(
                operation, shared_case(label, operation, nbytes, ranks).nbytes, ("shm", NUMBA_MPI)
            )
            row = f"{label} in @njit", "growth, njit"
            for side in asked.sides:
                yield Figure(job, asked, side, *row, setting="growth, njit")


FIGURES = {"test_collective": collectives, "test_loop": loops}


def test_collective(record_figure):
    record_figure()


def test_loop(record_figure):
    record_figure()


@pytest.fixture(scope="module", params=RANKS, ids="{}_ranks".format)
def started(request, pytestconfig, tmp_path_factory):
    """Return a number of ranks, and how long jobs of that size take, by side; sides take turns."""
    folder, ranks = tmp_path_factory.mktemp("starts"), request.param
    starts = {OURS: (*our_start(ranks, str(folder)), OUR_BEGIN)}
    for name, start in mpi_starts(ranks, str(folder)).items():
        starts[name] = (*start, MPI_BEGIN)
    sides = {}
    for number, (name, (words, environ, begin)) in enumerate(starts.items()):
        program = folder / f"{number}.py"
        program.write_text(ONE_ALLREDUCE.format(begin=begin))
        sides[name] = partial(process_s, [*words, str(program)], environ)
    return ranks, in_turn(sides, pytestconfig.getoption("rounds"))


@pytest.mark.parametrize("side", [OURS, *LIBRARIES.values()])
def test_start(record, started, side):
    ranks, samples = started
    if side not in samples:
        pytest.skip(f"{side} is not there")
    others = {name: taken for name, taken in samples.items() if name != side == OURS}
    record(
        samples[side],
        label="a job of one allreduce", operation="growth, starts", setting="growth, starts",
        ranks=ranks, side=side,
        ratio_to={name: ratios(samples[side], taken) for name, taken in others.items()},
    )  # fmt: skip


@pytest.mark.parametrize("ranks", [1, *RANKS])
def test_training(record, tmp_path, ranks):
    example, case, out = example_folder(), tmp_path / "case.json", tmp_path / "out.json"
    sizes = [word for name, n in CASE.items() for word in (f"--{name}", str(n))]
    subprocess.run([sys.executable, example / "generate.py", case, *sizes], check=True)
    train = [*our_start(ranks, str(tmp_path))[0], example / "train.py", case, "--quiet"]
    # the first of the two trainings compiles, if anything has to be compiled
    for iterations in (1, ITERATIONS):
        limits = "--forward-passes", str(PASSES), "--iterations", str(iterations), "--out", out
        subprocess.run([*train, *limits], check=True, timeout=TRAINING_LIMIT_S)
    told = json.loads(Path(out).read_text())
    record(
        told["iteration_s"],
        label="an SDDP iteration", operation="growth, sddp", setting="growth, sddp",
        ranks=ranks, side=OURS, backend="shm",
    )  # fmt: skip
