"""Each rank takes the pages that it owns, so that these pages are on its own NUMA node."""

import errno
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from cobre_kernels.shm import control

from cobre_comm import AllocationFailed
from cobre_comm.backends.shm import numa, region
from cobre_comm.system import cpus
from cobre_comm.testing.cases.raised import raises
from tests.forked import on_forks
from tests.sysfs import write_sysfs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are not reserved here")

SHAPE = (1001, 700)
ROW_BYTES = 8 * SHAPE[1]
NODES = {"COBRE_TEST_PRETEND_NODES": "0,1,1"}
reserve = getattr(os, "posix_fallocate", None)


def watched(monkeypatch):
    """Return a list that gets each range of bytes whose pages this rank takes."""
    ranges = []

    def note(fd, start, count):
        reserve(fd, start, count)
        ranges.append(range(start, start + count))

    monkeypatch.setattr(os, "posix_fallocate", note)
    return ranges


@pytest.mark.ranks(3, backends=["shm", "tcp", "mpi-mpich"])
def test_ranks_take_the_pages_of_regions(comm, monkeypatch):
    taken = watched(monkeypatch)
    for placement in ("owner", "leader", "interleave"):
        comm.create_shared_region(SHAPE, placement=placement).close()
    comm.create_shared_region(2).close()  # rank 2 has no element of this region
    start, stop = comm.share(SHAPE[0])
    share = range(start * ROW_BYTES, stop * ROW_BYTES)
    whole = [range(SHAPE[0] * ROW_BYTES)] if comm.rank == 0 else []
    two = [range(8 * comm.rank, 8 * comm.rank + 8)] if comm.rank < 2 else []
    assert taken == [share, *whole, share, *two]


@on_forks(3, "tcp", env=NODES)
def test_ranks_take_the_pages_of_their_share_on_the_node(comm, monkeypatch):
    taken = watched(monkeypatch)
    comm.create_shared_region(SHAPE).close()
    begin, end = [(0, 1001), (0, 501), (501, 1001)][comm.rank]
    assert taken == [range(begin * ROW_BYTES, end * ROW_BYTES)]


@on_forks(3)
def test_ranks_take_the_pages_of_their_slots(comm, monkeypatch):
    taken = watched(monkeypatch)
    with comm.split_local() as other:
        stride, begin = other._comm.node.buffer_stride, control.buffers_offset(3)
    first, last = begin + comm.rank * stride, begin + (comm.rank + 1) * stride
    # The last range is that of the slots; before the slots a rank takes the memory of its journal.
    assert taken[-1] == range(first if comm.rank else 0, last)


@pytest.mark.ranks(1, backends=["shm"])
def test_a_large_region_is_taken_in_pieces(comm, monkeypatch):
    """Pieces are short: before Linux 6.10 a signal, say of a timer, undoes the piece under way."""
    taken = []
    monkeypatch.setattr(
        os, "posix_fallocate", lambda fd, start, count: taken.append((start, count))
    )
    comm.create_shared_region(512 * 2**20, "u1").close()
    assert max(count for _, count in taken) <= 16 * 2**20
    assert sum(count for _, count in taken) == 512 * 2**20


@pytest.mark.parametrize("placement", ["leader", "owner", "interleave"])
def test_ranks_take_all_rows_together(placement):
    for rows in (1, 2, 7, 1000):
        for size in (1, 2, 5, 64):
            every = [region.own_rows(placement, rows, rank, size) for rank in range(size)]
            assert [row for own in every for row in own] == list(range(rows))


@on_forks(3, "shm", "tcp")
def test_a_rank_that_cannot_take_its_pages(comm, monkeypatch):
    def refuse(fd, start, count):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if comm.rank == 1:
            patch.setattr(os, "posix_fallocate", refuse)
        error = raises(AllocationFailed, comm.create_shared_region, SHAPE)
        assert "rank 1: No space left on device in shared memory" in str(error)
        assert error.requested_bytes == math.prod(SHAPE) * 8
        raises(AllocationFailed, comm.split_local)
    with comm.create_shared_region(SHAPE) as made:
        made.part(comm.rank, comm.rank + 1)[:] = comm.rank
        made.fence()
        assert made.as_slice()[:3, 0].tolist() == [0, 1, 2]


def policy_at(address):
    """Return the memory policy that Linux reports for the mapping at an address."""
    for line in Path("/proc/self/numa_maps").read_text().splitlines():
        if line.startswith(f"{address:08x} "):
            return line.split()[1]
    return ""


@pytest.mark.skipif(not Path("/proc/self/numa_maps").exists(), reason="a kernel without NUMA")
@on_forks(2)
def test_pages_are_interleaved_over_several_numa_nodes(comm, monkeypatch, tmp_path):
    """One NUMA node is enough for this test, because Linux ignores nodes that a machine lacks."""
    done, interleave = [], numa.interleave
    monkeypatch.setattr(cpus, "SYSFS", write_sysfs(tmp_path / f"{comm.rank}", cores=1))
    monkeypatch.setattr(numa, "interleave", lambda *where: done.append(interleave(*where)))
    assert numa.online_nodes() == [0, 1, 2, 3]
    for placement in ("owner", "leader", "interleave"):
        with comm.create_shared_region(SHAPE, np.float64, placement=placement) as made:
            made.part(comm.rank, comm.rank + 1)[:] = 1
            told = policy_at(made.as_slice().ctypes.data)
            is_spread = comm.max(int(True in done))  # all ranks see the policy that one sets
            assert re.match("interleave" if is_spread else "default", told)
        comm.barrier()
    assert len(done) == (comm.rank == 0)  # one result, False if a container refuses the policy


def test_one_numa_node_needs_no_policy(monkeypatch, tmp_path):
    monkeypatch.setattr(cpus, "SYSFS", tmp_path)
    assert numa.online_nodes() == [0]
    assert not numa.interleave(0, 0)
