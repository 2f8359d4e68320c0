"""Large things: one copy in memory, and payloads of more than 2**31 bytes."""

import numpy as np
import psutil
import pytest

from cobre_comm.testing import run_ranks

GIB = 2**30


def available_gib():
    return psutil.virtual_memory().available / GIB


def pss_bytes():
    return psutil.Process().memory_full_info().pss


def populate_and_weigh(comm, nbytes):
    """Return how much the PSS of this rank grows with a region that all have read."""
    count = nbytes // 8
    before = pss_bytes()
    region = comm.create_shared_region(count)
    begin, end = comm.rank * count // comm.size, (comm.rank + 1) * count // comm.size
    region.block(begin, end)[:] = np.arange(begin, end, dtype=np.float64)
    region.fence()
    view = region.as_slice()
    assert view[0] == 0
    assert view[-1] == count - 1
    assert view.sum() == count * (count - 1) / 2
    comm.barrier()
    grown = pss_bytes() - before
    comm.barrier()
    return grown


@pytest.mark.skipif(available_gib() < 2, reason="needs 2 GiB of free memory")
def test_four_ranks_hold_one_copy_of_a_region():
    grown = run_ranks("shm", 4, populate_and_weigh, GIB // 4, timeout_s=120)
    assert 0.95 < sum(grown) / (GIB // 4) < 1.1


def gather_more_than_int32(comm, total_bytes):
    count = total_bytes // comm.size
    send = np.empty(count, dtype=np.uint8)
    send[:] = comm.rank + 1
    send[-1] = 100 + comm.rank
    recv = np.zeros(count * comm.size + 1, dtype=np.uint8)
    counts = np.full(comm.size, count)
    comm.allgatherv(send, recv, counts, np.arange(comm.size) * count)
    for rank in range(comm.size):
        block = recv[rank * count : (rank + 1) * count]
        assert block[0] == rank + 1
        assert block[-1] == 100 + rank
        assert np.count_nonzero(block == rank + 1) == count - 1
    return int(recv[-1])


@pytest.mark.slow
@pytest.mark.skipif(available_gib() < 14, reason="needs 14 GiB of free memory")
def test_allgatherv_of_three_gib():
    assert run_ranks("shm", 2, gather_more_than_int32, 3 * GIB, timeout_s=200) == [0, 0]
