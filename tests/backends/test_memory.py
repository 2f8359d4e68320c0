"""Memory: one copy of a large region, payloads of more than 2**31 bytes, and freed objects."""

import mmap
import os
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from cobre_kernels.collective.regions import NO_REGION, REGIONS
from cobre_kernels.machine.access import load_word_kernel

from cobre_comm.backends.region_table import RegionTable
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.mapping import before_unmapping, map_file
from tests.grid import EVERY_RANK_ALONE, slow

GIB = 2**30
LARGE_GIB = 14  # two ranks of 3 GiB each, and what MPI allocates for its messages
EACH_ALONE = [f"mpi-{library}:{EVERY_RANK_ALONE}" for library in ("openmpi", "mpich")]


def available_gib():
    return psutil.virtual_memory().available / GIB


def pss_bytes():
    return psutil.Process().memory_full_info().pss


@pytest.mark.skipif(available_gib() < 2, reason="needs 2 GiB of free memory")
@pytest.mark.ranks(4, backends=["shm", slow("mpi-mpich"), slow("mpi-openmpi")], timeout=120)
def test_four_ranks_hold_one_copy_of_a_region(comm):
    """When all ranks have read a region, the sum of their PSS has grown by its size only once."""
    count = GIB // 4 // 8
    before = np.array([pss_bytes()])
    region = comm.create_shared_region(count)
    begin, end = comm.share(count)
    region.part(begin, end)[:] = np.arange(begin, end, dtype=np.float64)
    region.fence()
    view = region.as_slice()
    assert view[0] == 0
    assert view[-1] == count - 1
    assert view.sum() == count * (count - 1) / 2
    comm.barrier()
    grown, total = pss_bytes() - before, np.zeros_like(before)
    comm.allreduce(grown, total)
    assert 0.95 < total[0] / region.nbytes < 1.1


@pytest.mark.slow
@pytest.mark.skipif(available_gib() < LARGE_GIB, reason=f"needs {LARGE_GIB} GiB of free memory")
@pytest.mark.ranks(2, backends=["shm", *EACH_ALONE, "mpi-openmpi"], timeout=200)
def test_beyond_31_bits(comm):
    """Counts and displacements in bytes are too large for a C int."""
    size, rank = comm.size, comm.rank
    counts = [2**30 + 5 + r for r in range(size)]
    displs = [sum(counts[:r]) for r in range(size)]
    send = np.zeros(counts[rank], dtype=np.int8)
    send[:: 2**20] = rank + 3
    send[-1] = 77 + rank
    everything = np.zeros(sum(counts) + 1, dtype=np.int8)
    comm.allgatherv(send, everything, counts, displs)
    for r in range(size):
        block = everything[displs[r] : displs[r] + counts[r]]
        assert (block[:: 2**20] == r + 3).all()
        assert block[-1] == 77 + r
        assert np.count_nonzero(block) == 1025 + (1 if (counts[r] - 1) % 2**20 else 0)
    assert everything[-1] == 0
    buffer = everything
    buffer[:] = 0
    if rank == 1:
        buffer[:: 2**20] = 9
        buffer[-1] = 4
    comm.broadcast(buffer, 1)
    assert (buffer[: -1 : 2**20] == 9).all()
    assert buffer[-1] == 4
    assert np.count_nonzero(buffer) == len(range(0, len(buffer), 2**20)) + 1


def names_of_calls_while(drop):
    """Return the names of the functions of Python that run while an object is freed."""
    ran = []
    sys.setprofile(lambda frame, event, _: event == "call" and ran.append(frame.f_code.co_name))
    try:
        drop()
    finally:
        sys.setprofile(None)
    return ran


def test_an_interrupt_is_not_lost_in_a_mapping_that_goes(tmp_path):
    """C code alone frees a mapping, because Python would lose an interrupt in a ``__del__``."""
    with (tmp_path / "file").open("wb+") as file:
        file.truncate(mmap.PAGESIZE)
        held = [map_file(file.fileno(), mmap.PAGESIZE)]
    address = held[0].ctypes.data
    assert names_of_calls_while(held.clear) == []
    if sys.platform == "linux":
        assert f"{address:x}-" not in Path("/proc/self/maps").read_text()


def test_nor_in_a_region_that_goes(tmp_path):
    table, number = RegionTable(), 7
    with (tmp_path / "file").open("wb+") as file:
        file.truncate(mmap.PAGESIZE)
        held = [map_file(file.fileno(), mmap.PAGESIZE)]
    strike_off = table.add(number, held[0].ctypes.data, mmap.PAGESIZE)
    before_unmapping(held[0], strike_off)
    del strike_off
    row = REGIONS.at(table.address).rows[0]
    assert load_word_kernel.call(row.number) == number
    assert names_of_calls_while(held.clear) == []
    assert load_word_kernel.call(row.number) == NO_REGION


def test_nor_in_a_descriptor_that_goes():
    held = [Descriptor(os.open, os.devnull, os.O_RDONLY)]
    number = held[0].number
    os.fstat(number)
    assert names_of_calls_while(held.clear) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_descriptor_is_closed_once():
    file = Descriptor(os.open, os.devnull, os.O_RDONLY)
    file.close()
    with open(os.devnull) as other:  # noqa: PTH123  # gets the number of the closed descriptor
        file.close()
        assert file.number == -1
        del file
        other.read()
