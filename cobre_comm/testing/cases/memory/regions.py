"""Shared regions and split_local: ranks of a node share memory, and one of them leads."""

import math
import pathlib
import resource
import time
from functools import partial

import numpy as np
from numba import njit

from cobre_comm import AllocationFailed, ReduceOp
from cobre_comm.testing.cases.calls import by_caller, calls
from cobre_comm.testing.cases.case import NEVER, QUICK, Case, Together
from cobre_comm.testing.cases.collectives import allreduce
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.reference import STRUCTURED, assert_same_bytes, block


def populate_on_leader(comm, dtype, count):
    region = comm.create_shared_region(count, dtype)
    assert (region.count, region.dtype) == (count, np.dtype(dtype))
    assert region.nbytes == count * np.dtype(dtype).itemsize
    assert not region.as_slice().tobytes().strip(b"\0"), "a region starts zero-filled"
    region.fence()
    mine = region.as_mut_slice()
    assert mine.shape == ((count,) if comm.is_leader else (0,))
    expected = block(dtype, 5, count)
    if comm.is_leader:
        mine[:] = expected
    else:  # read-only, so that even an assignment of nothing to nothing raises
        raises(ValueError, mine.__setitem__, slice(None), expected[:0])
    region.fence()
    view = region.as_slice()
    assert view.shape == (count,)
    assert_same_bytes(np.array(view), expected)
    assert not view.flags.writeable
    if count and view.dtype.names is None:
        raises(ValueError, view.__setitem__, 0, view[0])
    region.close()


def _block(region, start, stop):
    return region.part(start, stop)


def _lengths(region):
    return region.count, region.nbytes, region.shape


def _view(region):
    return region.as_slice()


BLOCKS, LENGTHS, VIEWS = (by_caller(each, nogil=False) for each in (_block, _lengths, _view))


def populate_by_block(comm, caller, count):
    with comm.create_shared_region(count, np.float64) as region:
        here = comm.split_local()
        start, stop = here.share(count)
        BLOCKS[caller](region, start, stop)[:] = block("f8", here.rank, stop - start)
        region.fence()
        assert LENGTHS[caller](region) == (count, 8 * count, (count,))
        parts = [block("f8", r, length) for r, length in enumerate(here.shares(count)[0])]
        assert_same_bytes(np.array(region.as_slice()), np.concatenate(parts))


def placed(comm, placement):
    """The placement of a region changes nothing that a program reads."""
    with comm.create_shared_region((600, 100), "f8", placement=placement) as region:
        assert not region.as_slice().any(), "a region starts zero-filled"
        region.fence()
        if comm.is_leader:
            region.as_mut_slice()[:] = block("f8", 1, region.shape)
        region.fence()
        assert_same_bytes(np.array(region.as_slice()), block("f8", 1, region.shape))


def populate_rows(comm, caller, shape, dtype):
    """A region of several axes is populated by rows, and read as one array of that shape."""
    take, expected = BLOCKS[caller], block(dtype, 3, shape)
    with comm.create_shared_region(shape, dtype) as region, comm.split_local() as here:
        assert not region.as_slice().tobytes().strip(b"\0"), "a region starts zero-filled"
        region.fence()
        mine = region.as_mut_slice()
        assert mine.shape == (shape if comm.is_leader else (0, *shape[1:]))
        start, stop = here.share(shape[0])
        rows = take(region, start, stop)
        assert rows.shape == (stop - start, *shape[1:])
        assert rows.flags.c_contiguous
        rows[:] = expected[start:stop]
        region.fence()
        assert LENGTHS[caller](region) == (expected.size, expected.nbytes, shape)
        assert_same_bytes(np.array(VIEWS[caller](region)), expected)
        told = str(raises(ValueError, take, region, 0, shape[0] + 1))
        assert told.endswith(f"is not inside a region of length {shape[0]}")
        region.fence()
        if expected.size:  # rows of a region can be an output too
            calls(caller, comm.rank).broadcast(comm, take(region, 0, 1), 0)
            region.fence()
            assert_same_bytes(np.array(region.as_slice()), expected)


def elements_that_are_arrays(comm):
    """A dtype that is itself an array adds axes to a region, as NumPy adds axes to an array."""
    pairs = np.dtype(("f8", 2))
    for dtype in (pairs, np.dtype((pairs, (3, 1)))):
        expected = np.zeros(4, dtype)
        with comm.create_shared_region(4, dtype) as region:
            assert (region.shape, region.dtype) == (expected.shape, expected.dtype)
            assert (region.count, region.nbytes) == (expected.size, expected.nbytes)
            expected[:] = block("f8", 1, expected.shape)
            if comm.is_leader:
                region.as_mut_slice()[:] = expected
            region.fence()
            assert_same_bytes(np.array(region.as_slice()), expected)
        comm.barrier()


def late_leader(comm, caller, pause_s):
    """After a fence all ranks see the leader's writes, also if the leader is late."""
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
    """Another rank's write is visible at once, without any call, so the memory is not private."""
    region = comm.create_shared_region(1000, np.int64)
    view, here = region.as_slice(), comm.split_local()
    if here.rank == here.size - 1:
        region.part(0, 1000)[:] = 7
    region.fence()
    assert view.tolist() == [7] * 1000


def block_bounds(comm, caller):
    region, take = comm.create_shared_region(10, np.float64), BLOCKS[caller]
    for start, stop in [(-1, 5), (0, 11), (6, 5), (11, 11), (-3, -1)]:
        told = str(raises(ValueError, take, region, start, stop))
        sentence, _, more = told.partition("; ")
        assert sentence == f"part [{start}, {stop}) is not inside a region of length 10"
        assert more.startswith("the second number is where") == (stop < start)
    raises(TypeError, take, region, 1.5, 3)
    assert take(region, 0, 0).size == take(region, 10, 10).size == 0
    assert take(region, 2, 10).size == 8
    whole = take(region, 0, 10)
    whole[comm.rank % 10] = 1.0  # the block of all elements is writable
    region.fence()


def leader(comm):
    return comm.is_leader


def split(comm, caller):
    """Communicators of split_local outlive each other; return rank and size in the first one."""
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


def too_large(comm, caller, count):
    caught = raises(AllocationFailed, comm.create_shared_region, count, np.float64)
    nbytes = 8 * math.prod(count) if isinstance(count, tuple) else 8 * count
    assert caught.requested_bytes == nbytes
    assert str(nbytes) in str(caught)
    four_in_a_row(comm, caller)
    region = comm.create_shared_region(3)
    region.fence()


def one_rank_without_addresses(comm, caller):
    """Each rank in turn cannot map a region: all ranks get the same error, and continue."""
    nbytes = 256 * 2**20
    for victim in {0, comm.size - 1}:
        limits = resource.getrlimit(resource.RLIMIT_AS)
        if comm.rank == victim:
            pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
            reached = pages * resource.getpagesize() + nbytes // 4
            resource.setrlimit(resource.RLIMIT_AS, (reached, limits[1]))
        try:
            caught = raises(AllocationFailed, comm.create_shared_region, nbytes, "u1")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        assert caught.requested_bytes == nbytes
        assert comm.size == 1 or f"rank {victim}: " in str(caught), str(caught)
        four_in_a_row(comm, caller)


def bad_region_arguments(comm):
    for count, dtype, error in [
        (-1, "f8", ValueError),
        ((), "f8", ValueError),
        ((2, -1), "f8", ValueError),
        ((2, 1.5), "f8", TypeError),
        ((True, 2), "f8", TypeError),
        ([2, 3], "f8", TypeError),
        (1.5, "f8", TypeError),
        (True, "f8", TypeError),
        ("3", "f8", TypeError),
        (3, object, TypeError),
        (3, [("a", object)], TypeError),
        (3, "S", TypeError),
        (3, "no such dtype", TypeError),
    ]:
        raises(error, comm.create_shared_region, count, dtype)
    for placement, error in (("nowhere", ValueError), (1, TypeError), (None, TypeError)):
        raises(error, comm.create_shared_region, 3, "f4", placement=placement)
    comm.create_shared_region(np.int32(3), "f4").fence()
    comm.create_shared_region((np.int32(3), 2), "f4").fence()


@njit(cache=True, nogil=True)
def compiled_fence_and_sum(region, rounds):
    total = 0.0
    for _ in range(rounds):
        region.fence()
        total += region.as_slice().sum()
    return total


@njit(cache=True)
def _write_compiled(region):
    region.as_slice()[0] = 1.0


def compiled_write_is_refused(comm):
    from numba import TypingError

    region = comm.create_shared_region(3)
    raises((TypingError, ValueError, TypeError), _write_compiled, region)
    assert region.as_slice().tolist() == [0.0] * 3
    comm.barrier()


def one_leads_each_node(ran):
    right = ran.settings.leaders(ran.backend, ran.size)
    assert ran.values == right, f"is_leader is {ran.values} in rank order, should be {right}"


def nodes_are_split(ran):
    nodes = ran.settings.nodes(ran.backend, ran.size)
    for rank, value in enumerate(ran.values):
        here = [other for other in range(ran.size) if nodes[other] == nodes[rank]]
        right = here.index(rank), len(here)
        assert tuple(value) == right, f"rank {rank} is (rank, size) {value}, should be {right}"


case = partial(Case, callers=(), needs=("regions",), column="regions")
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
        callers=BOTH, needs=SPLIT, check=QUICK,
    ),
    case(
        "populate_rows", populate_rows,
        {"shape": [Together([(7, 3), (2, 3, 4), (600, 1000), (0, 5), (3, 0)])], "dtype": ["f8"]},
        callers=BOTH, needs=SPLIT, check=QUICK,
    ),
    case("elements_that_are_arrays", elements_that_are_arrays),
    case("placed", placed, {"placement": ["leader", "owner", "interleave"]}),
    case("memory_is_shared", one_copy_in_memory, needs=SPLIT, check=QUICK),
    case("late_leader", late_leader, {"pause_s": [0.1]}, callers=BOTH),
    case("block_bounds", block_bounds, callers=BOTH),
    case("one_leader", leader, expect=one_leads_each_node, check=QUICK),
    case(
        "split_local_is_independent", split, callers=BOTH, needs=("split",),
        expect=nodes_are_split, check=QUICK,
    ),
    case(
        "too_large", too_large, {"count": [Together([2**45, 2**58, 2**62, (2**31, 2**31)])]},
        callers=BOTH,
    ),
    case("one_rank_without_addresses", one_rank_without_addresses, callers=BOTH, check=NEVER),
    case("bad_arguments", bad_region_arguments),
    case("compiled_write_is_refused", compiled_write_is_refused, needs=NJIT),
]  # fmt: skip
