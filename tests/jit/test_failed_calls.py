"""Calls that fail in ``@njit`` code give back the arrays that they have made."""

import numpy as np
import pytest
from numba import njit

from cobre_comm import InvalidBufferSize, LocalBackend
from cobre_comm.testing.cases.memory.lifetimes import stays_flat

LONG = np.zeros(50_000, np.int32)  # of one rank: too long a table, which is copied for the kernel


@njit
def allgatherv(comm, send, recv):
    comm.allgatherv(send, recv, LONG, LONG)


@njit
def gatherv(comm, send, recv):
    comm.gatherv(send, recv, LONG, LONG, 0)


@njit
def exact_sum(comm, values):
    comm.exact_sum(values)


@pytest.mark.parametrize("collective", [allgatherv, gatherv])
def test_copied_tables_go(collective):
    send, recv = np.ones(1), np.ones(1)

    def act(number):
        with pytest.raises(InvalidBufferSize, match="counts"):
            collective(comm, send, recv)

    with LocalBackend() as comm:
        stays_flat(act, 40)


def test_the_digits_of_a_sum_go():
    values = np.ones(5, np.uint8)[1:].view(np.float32)  # not aligned

    def act(number):
        for _ in range(500):
            with pytest.raises(ValueError, match="aligned"):
                exact_sum(comm, values)

    with LocalBackend() as comm:
        stays_flat(act, 40)
