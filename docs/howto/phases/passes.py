"""Two passes in compiled code, and a checkpoint from Python, each a phase of its own."""

import time

from numba import njit

from cobre_comm import Communicator, create_communicator


@njit(cache=True, nogil=True)
def iterate(comm: Communicator, forward: int, backward: int, rounds: int, work: int) -> float:
    """Go through both passes, round after round; rank 1 has more of the backward pass."""
    total = 0.0
    for _ in range(rounds):
        outer = comm.enter_phase(forward)
        for i in range(work):
            total += i**0.5
        comm.barrier()
        comm.enter_phase(backward)
        for i in range(work * (1 + 2 * comm.rank)):
            total += i**0.5
        comm.barrier()
        comm.enter_phase(outer)
    return total


with create_communicator() as comm:
    iterate(comm, 0, 0, 1, 1)  # compile
    forward, backward = comm.phase_number("forward"), comm.phase_number("backward")
    for _ in range(4):
        iterate(comm, forward, backward, 10, 500_000)
        with comm.phase("checkpoint"):
            if comm.rank == 0:
                time.sleep(0.01)  # write it
            comm.barrier()
    comm.stats().to_csv(f"stats-{comm.rank}.csv")
