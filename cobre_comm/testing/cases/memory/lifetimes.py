"""Regions and communicators end in any order, and leave nothing in the process."""

import contextlib
import ctypes
import gc
import itertools
import pathlib
import signal
import sys
import time
import weakref

import numpy as np
from numba import njit, typed

from cobre_comm import CollectiveFailed, InvalidCommunicator, InvalidRoot
from cobre_comm.testing.cases.case import BOTH, NEVER, QUICK, Slow, Together
from cobre_comm.testing.cases.memory.regions import (
    NJIT,
    SPLIT,
    case,
    compiled_fence_and_sum,
)
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.reference import sentinels

GROWTH_KIB = 2048  # 10,000 leaks of 0.2 KiB
WAIT_S = 0.2  # after this time the others have checked whether this rank lives


def held():
    """Return the numbers of descriptors and of mappings of shared memory that this process has."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    return len(list(pathlib.Path("/proc/self/fd").iterdir())), maps.count("/dev/shm/")


def private_kib():
    """Return this process's private memory in KiB, without the allocator's free memory."""
    with contextlib.suppress(AttributeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def stays_flat(act, rounds):
    """Repeat an act; after a warm-up, the process holds no more than before.

    Garbage is collected after each act. If Python collected by itself, more garbage would gather,
    and the allocator would keep hardly used blocks of 1 MiB. Objects that exist before the first
    act are frozen, so that no collection looks at them.
    """
    before = 0, (0, 0)
    gc.collect()
    gc.freeze()
    try:
        for number in range(rounds):
            if number == rounds // 4:
                before = private_kib(), held()
            act(number)
            gc.collect()
    finally:
        gc.unfreeze()
    assert held() == before[1], f"(descriptors, mappings) {before[1]}, then {held()}"
    grown = private_kib() - before[0]
    assert grown < GROWTH_KIB, f"private memory has grown by {grown} KiB in {rounds} rounds"


def all_in_turn(comm, rounds):
    """Make communicators, regions and failed collectives in turn: nothing stays in the process."""

    def act(number):
        is_local = number // 2 % 2 == 1
        child = comm.split_local() if is_local else comm.split(comm.rank % 2)
        region = child.create_shared_region(1 + 600 * (number % 3))
        region.part(0, 1)[:] = 1.0
        region.fence()
        if is_local or comm.backend != "mpi":  # over MPI a broken child stays until MPI_Finalize
            fail(child)
        if number % 2:
            region.close()
            child.close()

    stays_flat(act, rounds if comm.backend != "mpi" else max(rounds // 20, 20))


def fail(comm):
    """Make a collective fail on all ranks; this breaks a communicator of several ranks."""
    if comm.size > 1:
        values = np.ones(3 + comm.rank)
        raises(CollectiveFailed, comm.allreduce, values, values)
    else:
        raises(InvalidRoot, comm.broadcast, np.ones(3), 5)


@njit(cache=True)
def compiled_broadcast(comm, buf, root):
    comm.broadcast(buf, root)


def fail_in_compiled_code(comm):
    """Make a collective fail in compiled code that has the only reference to its communicator."""
    with comm.split_local() as child:
        root = child.rank if child.size > 1 else 5
    values, told = np.ones(3), ""
    try:  # no call of raises(), which would hold a reference
        compiled_broadcast(comm.split_local(), values, root)
    except (CollectiveFailed, InvalidRoot) as error:
        told = str(error)
    assert "root" in told, told


def failures_stay_apart(comm, caller):
    """A failure of one communicator leaves other communicators as they were."""
    if caller == "njit":
        fail_in_compiled_code(comm)
    else:
        with comm.split_local() as child:
            fail(child)
    comm.barrier()
    if comm.rank == 0:
        time.sleep(WAIT_S)
    four_in_a_row(comm, caller)


@njit(cache=True)
def compiled_barrier(comm):
    comm.barrier()


def alarm(number, frame):
    raise TimeoutError("from the handler")


def interrupted_goes(comm, caller):
    """If a handler's exception has ended a wait, no reference to the communicator remains."""
    barrier = compiled_barrier if caller == "njit" else type(comm).barrier
    own = comm.split_local()
    gone, is_struck, told = weakref.ref(own), own.rank == 0 and own.size > 1, ""
    barrier(comm)  # compiles
    if is_struck:
        before = signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, WAIT_S)
        try:
            barrier(own)
        except TimeoutError as error:
            told = str(error)
        finally:
            signal.signal(signal.SIGALRM, before)
        with contextlib.suppress(InvalidCommunicator):
            own.barrier()
    comm.barrier()  # until here the other ranks need their communicator
    del own
    gc.collect()
    assert (told == "from the handler") == is_struck
    assert gone() is None


def many_alive(comm, count):
    """An open region holds no descriptor, so there may be more regions than open files."""
    before = held()[0]
    regions = [comm.create_shared_region(1 + number % 3) for number in range(count)]
    assert held()[0] == before
    regions[-1].fence()
    assert [region.count for region in regions] == [1 + n % 3 for n in range(count)]


def split_outlives_parent(comm):
    child = comm.split_local()
    comm.barrier()
    comm.close()
    four_in_a_row(child, "python")
    region = child.create_shared_region(5)
    child.close()
    assert region.as_slice().tolist() == [0.0] * 5


def views_outlive_everything(comm, order):
    """A region, its communicator and its views end in any order; the views stay readable."""
    own = comm.split_local()
    region = own.create_shared_region(100_000, np.int64)
    start, here = own.rank * 1000, own.size
    writable = region.part(start, start + 1000)
    writable[:] = own.rank + 1
    region.fence()
    view = region.as_slice()
    for action in order:
        if action == "close region":
            region.close()
            raises(InvalidCommunicator, region.as_slice)
            raises(InvalidCommunicator, region.fence)
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


def closed_communicator(comm):
    own = comm.split_local()
    region = own.create_shared_region(4)
    own.barrier()
    own.close()
    own.close()
    raises(InvalidCommunicator, own.create_shared_region, 3)
    raises(InvalidCommunicator, own.split_local)
    raises(InvalidCommunicator, own.split, 0)
    raises(InvalidCommunicator, region.fence)
    raises(InvalidCommunicator, compiled_fence_and_sum, region, 1)
    assert region.as_slice().size == 4


@njit(cache=True)
def compiled_view(region):
    return region.as_slice()


@njit(cache=True)
def compiled_part(region, start, stop):
    return region.as_slice()[start:stop]


def in_compiled_code(comm):
    region = comm.create_shared_region(12, np.float64)
    if comm.is_leader:
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
    raises(InvalidCommunicator, compiled_view, closed)
    comm.barrier()


@njit(cache=True)
def held_view(regions):
    return regions[0].as_slice()


@njit(cache=True)
def held_block(regions):
    return regions[0].part(0, 3)


@njit(cache=True)
def held_fence(regions):
    regions[0].fence()


def closed_for_holders(comm):
    """In compiled code a closed region raises an error, and its views stay readable."""
    region = comm.create_shared_region(3)
    held = typed.List([region])
    held_fence(held)
    view, part = held_view(held), held_block(held)
    region.close()
    for call in (held_view, held_block, held_fence):
        told = str(raises(InvalidCommunicator, call, held))
        assert told == "this shared region is closed; create another one"
    raises(InvalidCommunicator, region.part, 0, 3)
    part[:] = 4.0
    assert view.tolist() == [4.0] * 3
    comm.barrier()


def compiled_references(comm, rounds):
    """No reference is lost or gained when regions pass into compiled code."""
    region = comm.create_shared_region(6)
    compiled_fence_and_sum(region, 1)
    compiled_view(region)
    readable = region.as_slice()
    before = sys.getrefcount(region), sys.getrefcount(readable), sys.getrefcount(comm)
    for _ in range(rounds):
        compiled_fence_and_sum(region, 1)
        compiled_view(region)
    assert (sys.getrefcount(region), sys.getrefcount(readable), sys.getrefcount(comm)) == before


ORDERS = dict.fromkeys(
    order[: order.index("drop") + 1]
    for order in itertools.permutations(["close region", "close comm", "drop"])
)
CASES = [
    case("split_local_outlives_its_parent", split_outlives_parent, needs=SPLIT, fresh=True),
    case(
        "views_outlive_everything", views_outlive_everything, {"order": [Together(ORDERS)]},
        needs=SPLIT,
    ),
    case(
        "failures_stay_apart", failures_stay_apart, callers=BOTH,
        needs=(*SPLIT, "disagreement"),
    ),
    case("interrupted_communicators_go", interrupted_goes, callers=BOTH, needs=(*SPLIT, "signals")),
    case("live_regions_hold_no_descriptor", many_alive, {"count": [50]}),
    case("nothing_grows", all_in_turn, {"rounds": [40]}, needs=(*SPLIT, "disagreement")),
    case(
        "nothing_grows_in_ten_thousand_rounds", all_in_turn, {"rounds": [Slow(10_000)]},
        needs=(*SPLIT, "disagreement"), where="thorough", timeout_s=1800, check=NEVER,
    ),
    case("closed_communicator", closed_communicator, needs=SPLIT),
    case("in_compiled_code", in_compiled_code, needs=NJIT, check=QUICK),
    case("closed_for_holders", closed_for_holders, needs=NJIT),
    case(
        "compiled_code_keeps_reference_counts", compiled_references, {"rounds": [100]},
        needs=NJIT,
    ),
]  # fmt: skip
