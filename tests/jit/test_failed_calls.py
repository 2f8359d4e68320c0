"""A failing call in ``@njit`` code loses no interrupt, and frees the arrays that it has made."""

import ctypes
import signal

import numpy as np
import pytest
from numba import njit

from cobre_comm import InvalidBufferSize, LocalBackend, ReduceOp
from cobre_comm.testing.cases.memory.lifetimes import stays_flat

# a table too long for one rank; a call copies the table for the kernel
LONG = np.zeros(50_000, np.int32)


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
    values = np.ones(5, np.uint8)[1:].view(np.float32)  # its address is not aligned

    def act(number):
        for _ in range(500):
            with pytest.raises(ValueError, match="aligned"):
                exact_sum(comm, values)

    with LocalBackend() as comm:
        stays_flat(act, 40)


send_signal = getattr(ctypes.CDLL(None), "raise")
send_signal.argtypes, send_signal.restype = [ctypes.c_int], ctypes.c_int


@njit
def fail_after_a_signal(comm, send, recv, op):
    # Python does not run between this signal and the error of the call that follows
    send_signal(signal.SIGUSR1)
    comm.allreduce(send, recv, op)


def test_an_interrupt_just_before_a_call_fails_is_raised():
    def handler(*_):
        raise TimeoutError("from the handler")

    def act(number):
        with pytest.raises(TimeoutError, match="from the handler"):
            fail_after_a_signal(comm, np.ones(2), np.ones(3), ReduceOp.SUM)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with LocalBackend() as comm:
            stays_flat(act, 40)
    finally:
        signal.signal(signal.SIGUSR1, before)
