"""What ranks do in a small /dev/shm, and the job around them; run as a module in a namespace."""

import os
import sys

import numpy as np

from cobre_comm import AllocationFailed, ReduceOp, create_communicator
from cobre_comm.backends.shm import rendezvous
from cobre_comm.testing import leftovers, run_ranks_outcomes
from cobre_comm.testing.cases.collectives import allgatherv, allreduce
from cobre_comm.testing.cases.memory import regions
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import raises


def any_size(comm):
    for count in (1, 1000, 300_000):
        allgatherv.gather_equal(comm, "python", "f8", count)
        allreduce.reduce(comm, "python", "f8", ReduceOp.SUM, count)
    region_bytes = 1 << 20
    with comm.create_shared_region(region_bytes, np.uint8) as region:
        region.block(0, region_bytes)[comm.rank] = comm.rank + 1
        region.fence()
        assert region.as_slice()[: comm.size].tolist() == [r + 1 for r in range(comm.size)]
    del region
    regions.too_large(comm, "python", 10 * 2**20)
    for _ in range(3):  # what is given back can be had again
        half = comm.create_shared_region(20 * 2**20, np.uint8)
        half.block(0, half.count)[comm.rank :: comm.size] = 1
        half.fence()
        assert half.as_slice().min() == 1
        half.close()
        del half
        comm.barrier()
    sequences.four_in_a_row(comm, "python")


def hardly_any(comm):
    allgatherv.gather_equal(comm, "python", "f8", 50_000)
    raises(AllocationFailed, comm.create_shared_region, 2**18, np.float64)
    sequences.four_in_a_row(comm, "python")


def start(comm, body):
    """Make the communicator here, and run the body."""
    if body == "hardly_any":  # without a minute's patience for a rank 0 that has failed
        rendezvous.START_TIMEOUT_S = 4.0
        os.environ["COBRE_SHM_TIMEOUT_SECS"] = "4"
    with create_communicator() as made:
        globals()[body](made)


def main(body, size, buffer_bytes=""):
    from tests.faults.shm import small_shm_bodies as importable

    env = {"COBRE_SHM_BUFFER_BYTES": buffer_bytes}
    outcomes = run_ranks_outcomes(
        "shm", int(size), importable.start, body, connect=False, env=env, timeout_s=150
    )
    for outcome in outcomes:
        if outcome.ok:
            print("OK")
        elif outcome.exception is not None:
            name = type(outcome.exception).__name__
            print(f"{name}: {outcome.exception}".replace("\n", " "))
        else:
            print(f"ENDED {outcome.exit_code} {outcome.timed_out}")
    print(f"LEFT {leftovers()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
