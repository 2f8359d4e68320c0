"""Shared regions and split_local: memory is shared, one rank leads, nothing is left."""

import gc
import itertools
import pathlib
import time

import numpy as np
from numba import njit

from cobre_comm import AllocationFailed, InvalidCommunicator, ReduceOp
from cobre_comm.testing.cases import allreduce
from cobre_comm.testing.cases.case import NEVER, QUICK, Case, Slow, Together
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.reference import STRUCTURED, assert_same_bytes, block, sentinels


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
    """After a fence all ranks see what the leader wrote before it, also if the leader is late."""
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


def split(comm, caller):
    """The new communicator works, and each of the two outlives the other; return its identity."""
    first, second = comm.split_local(), comm.split_local()
    local = first.rank, first.size
    for each in (first, second):
        allreduce.reduce(each, caller, "f8", ReduceOp.SUM, 3000)
    first.close()
    allreduce.reduce(second, caller, "f8", ReduceOp.MIN, 30)
    four_in_a_row(comm, caller)
    nested = second.split_local()
    second.close()
    four_in_a_row(nested, caller)
    nested.close()
    four_in_a_row(comm, caller)
    return local


def split_outlives_parent(comm):
    child = comm.split_local()
    comm.barrier()
    comm.close()
    four_in_a_row(child, "python")
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
    four_in_a_row(comm, caller)
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


def one_leads_each_node(ran):
    right = ran.settings.leaders(ran.backend, ran.size)
    assert ran.values == right, f"is_leader is {ran.values} in rank order, should be {right}"


def nodes_are_split(ran):
    nodes = ran.settings.nodes(ran.backend, ran.size)
    for rank, value in enumerate(ran.values):
        here = [other for other in range(ran.size) if nodes[other] == nodes[rank]]
        right = here.index(rank), len(here)
        assert tuple(value) == right, f"rank {rank} is (rank, size) {value}, should be {right}"


def case(name, body, over=None, *, needs=("regions",), **fields):
    fields = {"callers": (), "column": "regions", **fields}
    return Case(name, body, over or {}, needs=needs, **fields)


ORDERS = dict.fromkeys(
    order[: order.index("drop") + 1]
    for order in itertools.permutations(["close region", "close comm", "drop"])
)
BOTH, SPLIT, NJIT = ("python", "njit"), ("regions", "split"), ("regions", "njit")
CASES = [
    case(
        "populate_on_leader", populate_on_leader,
        {"dtype": ["f8", "i1", "c16", "?", STRUCTURED, "M8[s]", "S5"], "count": [1000]},
        check=QUICK,
    ),
    case(
        "lengths", populate_on_leader,
        {"dtype": ["f8"], "count": [Together([0, 1, 511, 512, 513, 200_000])]},
    ),
    case(
        "populate_by_block", populate_by_block, {"count": [Together([0, 5, 10_000])]},
        needs=SPLIT, check=QUICK,
    ),
    case("memory_is_shared", one_copy_in_memory, needs=SPLIT, check=QUICK),
    case("late_leader", late_leader, {"pause_s": [0.1]}, callers=BOTH),
    case("block_bounds", block_bounds),
    case("one_leader", leader, expect=one_leads_each_node, check=QUICK),
    case(
        "split_local_is_independent", split, callers=BOTH, needs=("split",),
        expect=nodes_are_split, check=QUICK,
    ),
    case("split_local_outlives_its_parent", split_outlives_parent, needs=SPLIT, fresh=True),
    case(
        "views_outlive_everything", views_outlive_everything, {"order": [Together(ORDERS)]},
        needs=SPLIT,
    ),
    case("two_hundred_leave_nothing", many_regions, {"count": [200]}),
    case(
        "a_thousand_leave_nothing", many_regions, {"count": [Slow(1000)]}, where="thorough",
        timeout_s=200, check=NEVER,
    ),
    case("communicators_leave_nothing", many_communicators, {"count": [20]}, needs=("split",)),
    case("too_large", too_large, {"count": [Together([2**45, 2**58, 2**62])]}, callers=BOTH),
    case("bad_arguments", bad_region_arguments),
    case("closed_communicator", closed_communicator, needs=SPLIT),
    case("in_compiled_code", in_compiled_code, needs=NJIT, check=QUICK),
    case("compiled_write_is_refused", compiled_write_is_refused, needs=NJIT),
    case(
        "compiled_code_keeps_reference_counts", compiled_references, {"rounds": [100]},
        needs=NJIT,
    ),
]  # fmt: skip
