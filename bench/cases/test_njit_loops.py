"""Calls inside @njit loops: ours, numba-mpi's, and a cache line that two cores hand back and forth.

All live in the same processes, which Open MPI or MPICH has started, and take turns. numba-mpi
(GPL-3.0) is measured here and nothing else: ``pip install numba-mpi``.
"""

from bench.cases.grid import parametrize
from bench.peers import LIBRARIES
from bench.plan import Figure, Job
from bench.ranks.njit.loops import NUMBA_MPI, PING_PONG, NjitLoop

ROWS = {
    "barrier": ("barrier", 0),
    "allreduce 32 B": ("allreduce", 32),
    "allreduce 4 KiB": ("allreduce", 4096),
    "broadcast 32 B": ("broadcast", 32),
    "allgatherv 32 B": ("allgatherv", 32),
    "allreduce 32 B + barrier": ("allreduce + barrier", 32),
}
ROWS_OVER_MPI = {
    **ROWS,
    "broadcast 4 KiB": ("broadcast", 4096),
    "allgatherv 4 KiB": ("allgatherv", 4096),
}


ALSO_CROWDED = {"allreduce 32 B"}  # also measured with 4 ranks without --full


def figures(full: bool):
    for ranks in (2, 4):
        for label, (operation, nbytes) in ROWS.items():
            if ranks > 2 and not full and label not in ALSO_CROWDED:
                continue
            ball = [PING_PONG] * (operation == "barrier" and ranks == 2)
            yield from sides(label, NjitLoop(operation, nbytes, ("shm", NUMBA_MPI, *ball)), ranks)
    if full:
        for ranks, nodes in ((2, ""), (4, ""), (2, "0,1")):
            for label, (operation, nbytes) in ROWS_OVER_MPI.items():
                asked = NjitLoop(operation, nbytes, ("mpi", NUMBA_MPI))
                yield from sides(label, asked, ranks, nodes, "over MPI")


def sides(label: str, asked: NjitLoop, ranks: int, nodes: str = "", setting: str = ""):
    for library in LIBRARIES:
        job = Job(ranks, library, "ranks.njit.loops", nodes)
        for side in asked.sides:
            row = f"{label} in @njit", f"njit {asked.operation}"
            yield Figure(job, asked, side, *row, asked.nbytes, setting=setting)


def pytest_generate_tests(metafunc):
    parametrize(metafunc, figures(metafunc.config.getoption("full")))


def test_njit_loop(record_figure):
    record_figure()
