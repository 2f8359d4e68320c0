"""Communicators over sockets leave nothing in a process, nor do their regions and failures."""

import contextlib
import ctypes
import threading

import pytest

from cobre_comm import TcpBackend, TcpConfig
from cobre_comm.processes.port import ReservedPort
from cobre_comm.testing.cases.memory.lifetimes import fail, stays_flat

M_ARENA_MAX = -8  # the number of this option in glibc's malloc.h


def meet_and_fail(rank, port):
    config = TcpConfig(
        rank=rank, size=2, port=port, token="secret",
        coordinator="127.0.0.1", bind_addr="127.0.0.1",
        share=False,  # the locks of shared memory show the end of a process, not of a thread
    )  # fmt: skip
    with TcpBackend(config) as comm:
        comm.create_shared_region(1000)
        comm.barrier()
        fail(comm)


@pytest.mark.slow
@pytest.mark.timeout(1100)
@pytest.mark.ranks(1, backends=["local"], timeout=1060)
@pytest.mark.parametrize("rounds", [80, 10_000])
def test_pairs_leave_nothing(comm, rounds):
    """Two ranks, which are two threads here, meet again and again."""
    with contextlib.suppress(AttributeError):  # where the C library is not glibc
        # Otherwise each thread has an arena of the allocator, and an arena sometimes grows by a
        # MiB.
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)

    def act(number):
        with ReservedPort() as reserved:
            other = threading.Thread(target=meet_and_fail, args=(1, reserved.port))
            other.start()
            meet_and_fail(0, reserved.port)
            other.join()

    stays_flat(act, rounds)
