"""A rank of test_njit_loops.py: loops of calls in @njit, ours and numba-mpi's in turn.

The buffers are the same in every call: they fit into the first-level cache, as the bounds that a
program reduces in its loop do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from functools import partial
from importlib.metadata import version

from mpi_loops import measure_loops
from mpi_numba import OURS, Buffers, their_loops
from mpi_sides import our_communicator
from mpi_start import MARK, library_name
from numba import njit
from ping_pong import PingPong

CASES = {
    "barrier": ("barrier", 0),
    "allreduce 32 B": ("allreduce", 32),
    "allreduce 4 KiB": ("allreduce", 4096),
    "broadcast 32 B": ("broadcast", 32),
    "allgatherv 32 B": ("allgather", 32),
    "allreduce 32 B + barrier": ("allreduce + barrier", 32),
}


def has_numba_mpi() -> bool:
    return importlib.util.find_spec("numba_mpi") is not None


@njit(nogil=True)
def our_allreduce_and_barrier(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allreduce(send, recv)
        comm.barrier()


def their_allreduce_and_barrier():
    import numba_mpi

    @njit(nogil=True)
    def loop(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allreduce(send, recv)
            status |= numba_mpi.barrier()
        return status

    return loop


def measure_case(label: str, comm, world, theirs: dict, rounds: int, block_s: float) -> dict:
    """Return the seconds per call of each block, by side; the results are verified."""
    from mpi4py import MPI

    operation, nbytes = CASES[label]
    kind = operation.split()[0]
    made = {"cobre_comm": Buffers(kind, nbytes, world.rank, world.size)}
    b = made["cobre_comm"]
    ours = {**OURS, "allreduce + barrier": our_allreduce_and_barrier}[operation]
    loops = {"cobre_comm": partial(ours, comm, b.send, b.recv, b.counts, b.displs)}
    if theirs:
        b = made["numba-mpi"] = Buffers(kind, nbytes, world.rank, world.size)
        loops["numba-mpi"] = partial(theirs[operation], b.send, b.recv)
    if operation == "barrier" and world.size == 2:
        made["ping-pong"] = PingPong(world)
        loops["ping-pong"] = made["ping-pong"].loop
    slowest = partial(world.allreduce, op=MPI.MAX)
    samples = measure_loops(loops, slowest, rounds, block_s)
    for one in made.values():
        one.verify()
    return samples


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--block", type=float, required=True)
    options = parser.parse_args()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    theirs = {}
    if has_numba_mpi():
        theirs = {**their_loops(), "allreduce + barrier": their_allreduce_and_barrier()}
    with our_communicator("shm", world) as comm:
        samples = {
            label: measure_case(label, comm, world, theirs, options.rounds, options.block)
            for label in options.cases
        }
    if world.rank == 0:
        told = {"mpi": library_name(MPI), "numba_mpi": version("numba-mpi") if theirs else None}
        print(MARK + json.dumps({**told, "samples": samples}))


if __name__ == "__main__":
    main()
