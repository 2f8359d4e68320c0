"""Run one loop in Python and in compiled code, with the same bits."""

from numba import njit

from cobre_comm import Communicator, create_communicator


def balance(comm: Communicator, x: float, steps: int) -> float:
    """Let every rank add its part of a number that all ranks need in the next step."""
    start, stop = comm.share(100)
    for step in range(steps):
        x = comm.sum((stop - start) / (step + x))
    return x


with create_communicator() as comm:
    in_python = balance(comm, 1.0, 1000)
    compiled = njit(cache=True)(balance)(comm, 1.0, 1000)
    if comm.rank == 0:
        print(f"{compiled:.9f}, the same bits: {compiled == in_python}")
