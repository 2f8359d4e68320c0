"""A rank of test_waiting.py: rank 0 comes late to a barrier; what rank 1's waiting costs.

Its CPU time is that of its whole process, in user and kernel mode.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import mpi_sides
import tcp_sides
from mpi_numba import OURS as OUR_LOOPS
from mpi_start import MARK, library_name

LATE, WAITING = 0, 1
AT_ONCE_S = 0.5  # how much longer or shorter the wait may be than rank 0 sleeps


def wait_for_late_rank(wait: Callable[[], object], world, late_s: float) -> tuple[float, float]:
    """Return how long rank 1 waited and how much CPU time it used, in seconds."""
    wait()  # compiles, and makes the ranks meet
    if world.rank == LATE:
        time.sleep(late_s)
    used, began = time.process_time(), time.perf_counter()
    wait()
    taken = time.perf_counter() - began, time.process_time() - used
    waited_s, used_s = world.allgather(taken)[WAITING]
    if abs(waited_s - late_s) > AT_ONCE_S + late_s / 10:
        raise AssertionError(f"waited {waited_s:.3f} s for a rank that came {late_s:g} s late")
    return waited_s, used_s


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", choices=["shm", "tcp", "mpi"], required=True)
    parser.add_argument("--doors", nargs="+", choices=["python", "njit", "peer"], required=True)
    parser.add_argument("--late", type=float, required=True, help="seconds")
    parser.add_argument("--rounds", help="one wait is all")
    parser.add_argument("--block", help="likewise")
    options = parser.parse_args()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if options.ours == "tcp":
        comm = tcp_sides.our_communicator(world, "127.0.0.1")
    else:
        comm = mpi_sides.our_communicator(options.ours, world)
    with comm:
        waits = {
            "python": comm.barrier,
            "njit": lambda: OUR_LOOPS["barrier"](comm, None, None, None, None, 1),
            "peer": world.Barrier,
        }
        taken = {
            door: wait_for_late_rank(waits[door], world, options.late) for door in options.doors
        }
    if world.rank == 0:
        print(MARK + json.dumps({"mpi": library_name(MPI), "waits": taken}))


if __name__ == "__main__":
    main()
