"""What a rank does in the tests of shared regions and split_local."""

import gc
import pathlib
import time

import numpy as np
from numba import njit

from cobre_comm import AllocationFailed, InvalidCommunicator, ReduceOp
from cobre_comm.testing.conformance.bodies import reduce, sync
from cobre_comm.testing.conformance.reference import assert_same_bytes, block, sentinels


def _raises(error, call, *args):
    try:
        call(*args)
    except error as caught:
        return caught
    raise AssertionError(f"{call} did not raise {error}")


def populate_on_leader(comm, dtype, count):
    region = comm.create_shared_region(count, dtype)
    assert (region.count, region.dtype) == (count, np.dtype(dtype))
    assert region.nbytes == count * np.dtype(dtype).itemsize
    assert not region.as_slice().tobytes().strip(b"\0"), "a region starts zero-filled"
    region.fence()
    mine = region.as_mut_slice()
    assert mine.shape == ((count,) if comm.is_leader else (0,))
    expected = block(dtype, 5, count)
    mine[:] = expected if comm.is_leader else expected[:0]
    region.fence()
    view = region.as_slice()
    assert view.shape == (count,)
    assert_same_bytes(np.array(view), expected)
    assert not view.flags.writeable
    if count and view.dtype.names is None:
        _raises(ValueError, view.__setitem__, 0, view[0])
    region.close()


def populate_by_block(comm, count):
    with comm.create_shared_region(count, np.float64) as region:
        here = comm.split_local()
        edges = [r * count // here.size for r in range(here.size + 1)]
        start, stop = edges[here.rank], edges[here.rank + 1]
        region.block(start, stop)[:] = block("f8", here.rank, stop - start)
        region.fence()
        parts = [block("f8", r, edges[r + 1] - edges[r]) for r in range(here.size)]
        assert_same_bytes(np.array(region.as_slice()), np.concatenate(parts))


def late_leader(comm, caller, pause_s):
    """Who has met the leader at a fence sees what it wrote before, however late it came."""
    region = comm.create_shared_region(1000, np.float64)
    comm.barrier()
    if comm.is_leader:
        time.sleep(pause_s)
        region.as_mut_slice()[:] = 3.0
    if caller == "njit":
        assert compiled_fence_and_sum(region, 1) == 3000.0
    else:
        region.fence()
        assert region.as_slice().sum() == 3000.0
    region.fence()


def one_copy_in_memory(comm):
    """Another rank's write is seen without any copy; the memory is not private."""
    region = comm.create_shared_region(1000, np.int64)
    view, here = region.as_slice(), comm.split_local()
    if here.rank == here.size - 1:
        region.block(0, 1000)[:] = 7
    region.fence()
    assert view.tolist() == [7] * 1000


def block_bounds(comm):
    region = comm.create_shared_region(10, np.float64)
    for start, stop in [(-1, 5), (0, 11), (6, 5), (11, 11), (-3, -1)]:
        _raises(ValueError, region.block, start, stop)
    assert region.block(0, 0).size == region.block(10, 10).size == 0
    assert region.block(2, 10).size == 8
    region.fence()


def leader(comm):
    return comm.is_leader


def split(comm, caller, nodes):
    """The new communicator works, and each of the two outlives the other."""
    first, second = comm.split_local(), comm.split_local()
    here = [rank for rank, node in enumerate(nodes) if node == nodes[comm.rank]]
    assert (first.rank, first.size) == (here.index(comm.rank), len(here))
    for each in (first, second):
        reduce.reduce(each, caller, "f8", ReduceOp.SUM, 3000)
    first.close()
    reduce.reduce(second, caller, "f8", ReduceOp.MIN, 30)
    sync.four_in_a_row(comm, caller)
    nested = second.split_local()
    second.close()
    sync.four_in_a_row(nested, caller)
    nested.close()
    sync.four_in_a_row(comm, caller)


def split_outlives_parent(comm):
    child = comm.split_local()
    comm.barrier()
    comm.close()
    sync.four_in_a_row(child, "python")
    region = child.create_shared_region(5)
    child.close()
    assert region.as_slice().tolist() == [0.0] * 5


def views_outlive_everything(comm, order):
    """Region, communicator and views go in any order; the views stay readable."""
    own = comm.split_local()
    region = own.create_shared_region(100_000, np.int64)
    start, here = own.rank * 1000, own.size
    writable = region.block(start, start + 1000)
    writable[:] = own.rank + 1
    region.fence()
    view = region.as_slice()
    for action in order:
        if action == "close region":
            region.close()
            _raises(InvalidCommunicator, region.as_slice)
            _raises(InvalidCommunicator, region.fence)
            region.close()
        elif action == "close comm":
            own.close()
        elif action == "drop":
            region = own = None
            gc.collect()
    writable[0] = -1
    comm.barrier()
    expected = np.repeat(np.arange(1, here + 1), 1000)
    expected[::1000] = -1
    assert view[: 1000 * here].tolist() == expected.tolist()
    del view, writable
    gc.collect()
    comm.barrier()


def _held():
    maps = pathlib.Path("/proc/self/maps").read_text()
    return len(list(pathlib.Path("/proc/self/fd").iterdir())), maps.count("/dev/shm/")


def many_regions(comm, count):
    """Created and closed again and again, they leave neither descriptor nor mapping."""
    comm.create_shared_region(10).close()
    gc.collect()
    before = _held()
    for number in range(count):
        region = comm.create_shared_region(1 + 600 * (number % 3), np.float64)
        region.block(0, 1)[:] = 1.0
        if number % 2:
            region.close()
        del region
    gc.collect()
    assert _held() == before


def many_communicators(comm, count):
    gc.collect()
    before = _held()
    for number in range(count):
        other = comm.split_local()
        other.barrier()
        if number % 2:
            other.close()
        del other
    gc.collect()
    assert _held() == before


def too_large(comm, caller, count):
    caught = _raises(AllocationFailed, comm.create_shared_region, count, np.float64)
    assert caught.requested_bytes == 8 * count
    assert str(8 * count) in str(caught)
    sync.four_in_a_row(comm, caller)
    region = comm.create_shared_region(3)
    region.fence()


def bad_region_arguments(comm):
    for count, dtype, error in [
        (-1, "f8", ValueError),
        (1.5, "f8", TypeError),
        (True, "f8", TypeError),
        ("3", "f8", TypeError),
        (3, object, TypeError),
        (3, [("a", object)], TypeError),
        (3, "S", TypeError),
        (3, "no such dtype", TypeError),
    ]:
        _raises(error, comm.create_shared_region, count, dtype)
    comm.create_shared_region(np.int32(3), "f4").fence()


def closed_communicator(comm):
    own = comm.split_local()
    region = own.create_shared_region(4)
    own.barrier()
    own.close()
    own.close()
    _raises(InvalidCommunicator, own.create_shared_region, 3)
    _raises(InvalidCommunicator, own.split_local)
    _raises(InvalidCommunicator, region.fence)
    assert region.as_slice().size == 4


@njit(cache=True, nogil=True)
def compiled_fence_and_sum(region, rounds):
    total = 0.0
    for _ in range(rounds):
        region.fence()
        total += region.as_slice().sum()
    return total


@njit(cache=True)
def compiled_view(region):
    return region.as_slice()


@njit(cache=True)
def compiled_part(region, start, stop):
    return region.as_slice()[start:stop]


def in_compiled_code(comm):
    region = comm.create_shared_region(12, np.float64)
    region.as_mut_slice()[:] = 2.0
    assert compiled_fence_and_sum(region, 3) == 72.0
    view, part = compiled_view(region), compiled_part(region, 2, 5)
    assert not view.flags.writeable
    region.close()
    del region
    gc.collect()
    comm.barrier()
    filler = [sentinels("f8", 4096) for _ in range(20)]
    assert (view.tolist(), part.tolist()) == ([2.0] * 12, [2.0] * 3)
    del view
    gc.collect()
    assert part.tolist() == [2.0] * 3
    del filler
    closed = comm.create_shared_region(2)
    closed.close()
    _raises(InvalidCommunicator, compiled_view, closed)
    comm.barrier()


@njit(cache=True)
def _write_compiled(region):
    region.as_slice()[0] = 1.0


def compiled_write_is_refused(comm):
    from numba.core.errors import TypingError

    region = comm.create_shared_region(3)
    _raises((TypingError, ValueError, TypeError), _write_compiled, region)
    assert region.as_slice().tolist() == [0.0] * 3
    comm.barrier()


def compiled_references(comm, rounds):
    """No reference is lost or gained when regions pass into compiled code."""
    import sys

    region = comm.create_shared_region(6)
    compiled_fence_and_sum(region, 1)
    compiled_view(region)
    readable = region.as_slice()
    before = sys.getrefcount(region), sys.getrefcount(readable), sys.getrefcount(comm)
    for _ in range(rounds):
        compiled_fence_and_sum(region, 1)
        compiled_view(region)
    assert (sys.getrefcount(region), sys.getrefcount(readable), sys.getrefcount(comm)) == before
