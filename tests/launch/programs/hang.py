"""Rank 2 does WHAT while others wait for it in an allreduce; CALLER is python or njit, for all."""

import sys
import time

import numpy as np

from cobre_comm import create_communicator

LONG_S = 60
LATER_S = 1.0  # rank 2 begins to wait so much later that the wait of the others ends first
ENDLESS = 10**12


def compute(rounds):
    total = 0.0
    for i in range(rounds):
        total += 1.0 / (i + 1.0)
    return total


def sleep(seconds):
    time.sleep(seconds)


def make_step(compute, sleep):
    def step(comm, node, what, values):
        comm.barrier()
        if comm.rank == 2 and what == "sleeps":
            sleep(LONG_S)
        elif comm.rank == 2 and what == "computes":
            values[0] = compute(ENDLESS)
        elif comm.rank == 2 and what == "disagrees":
            comm.barrier()
        elif comm.rank == 2 and what == "deadlocks":
            sleep(LATER_S)
            node.barrier()
        comm.allreduce(values, values)

    return step


what, caller = sys.argv[1:]
step = make_step(compute, sleep)
if caller == "njit":  # only compiled callers need numba, and to import it takes long
    from numba import njit, objmode

    @njit(cache=True)
    def sleep_compiled(seconds):
        with objmode():
            time.sleep(seconds)

    step = njit(cache=True)(make_step(njit(cache=True)(compute), sleep_compiled))
comm = create_communicator()
step(comm, comm.split_local(), what, np.ones(4))
