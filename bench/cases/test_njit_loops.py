"""Calls inside @njit loops: ours, numba-mpi's, and a cache line that two cores pass back and forth.

All three run in turn, in the same processes, which an MPI library has started. numba-mpi (GPL-3.0)
is used for measurements alone: ``pip install numba-mpi``.
"""

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
CROWDED = "allreduce 32 B"  # this row is also measured with 4 ranks


def figures():
    for label, (operation, nbytes) in ROWS.items():
        ball = [PING_PONG] * (operation == "barrier")
        yield from sides(label, NjitLoop(operation, nbytes, ("shm", NUMBA_MPI, *ball)), 2)
    yield from sides(CROWDED, NjitLoop(*ROWS[CROWDED], ("shm", NUMBA_MPI)), 4)


def sides(label: str, asked: NjitLoop, ranks: int, nodes: str = "", setting: str = ""):
    for library in LIBRARIES:
        job = Job(ranks, library, "ranks.njit.loops", nodes)
        for side in asked.sides:
            row = f"{label} in @njit", f"njit {asked.operation}"
            yield Figure(job, asked, side, *row, asked.nbytes, setting=setting)


FIGURES = {"test_njit_loop": figures}


def test_njit_loop(record_figure):
    record_figure()
