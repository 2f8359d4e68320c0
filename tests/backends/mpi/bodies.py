"""What ranks do with an MpiBackend that they make themselves."""

import contextlib
import gc
import os
import pathlib
import re
import signal
import socket
import sys
import threading

import numpy as np

from cobre_comm import (
    CollectiveFailed,
    InitializationFailed,
    InvalidCommunicator,
    MpiBackend,
    MpiConfig,
    create_communicator,
)
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import met, raises

BYTES_RECEIVED = slice(128, 136)  # tcpi_bytes_received in linux/tcp.h


def refusals(comm):
    """Return what each wrong ``comm`` raises."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    side = world.Split(world.rank % 2)
    across = side.Create_intercomm(0, world, 1 - world.rank % 2)
    wrong = across, MPI.COMM_NULL, 3, "world"
    caught = [str(raises(TypeError, MpiBackend, comm)) for comm in wrong]
    across.Free()
    side.Free()
    return caught


def _errors(kind, *operations):
    return [str(raises(kind, call)) for call in operations]


def after_finalize(comm):
    """The program finalizes MPI while it still holds communicators, regions and views."""
    from mpi4py import MPI

    ours = create_communicator()
    local, region = ours.split_local(), ours.create_shared_region(5)
    if ours.is_leader:
        region.as_mut_slice()[:] = 3.0
    region.fence()
    view, small = region.as_slice(), np.ones(1)
    MPI.Finalize()
    assert view.tolist() == [3.0] * 5
    caught = _errors(
        InvalidCommunicator,
        ours.barrier,
        local.barrier,
        lambda: ours.allreduce(small, np.zeros(1)),
        lambda: ours.broadcast(small),
        lambda: ours.allgatherv(small, np.zeros(ours.size), [1] * ours.size, range(ours.size)),
        lambda: ours.create_shared_region(3),
        ours.split_local,
        region.fence,
    )
    caught += _errors(InitializationFailed, create_communicator)
    for thing in (region, local, ours, ours):
        thing.close()
    gc.collect()
    assert view.tolist() == [3.0] * 5
    return caught


def single_threaded(comm):
    """MPI was initialised for one thread; return what creating a communicator raises."""
    import mpi4py

    mpi4py.rc.thread_level = "single"
    from mpi4py import MPI

    if MPI.Query_thread() != MPI.THREAD_SINGLE:
        return None  # this MPI gives more than it is asked for
    return _errors(InitializationFailed, create_communicator)[0]


def funneled(comm):
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    with create_communicator() as ours:
        sequences.four_in_a_row(ours, "python")
    from mpi4py import MPI

    caught = []
    thread = threading.Thread(
        target=lambda: caught.extend(_errors(InitializationFailed, create_communicator))
    )
    if MPI.Query_thread() == MPI.THREAD_FUNNELED:
        thread.start()
        thread.join()
    return caught


def not_initialized(comm):
    import mpi4py

    mpi4py.rc.initialize = False
    return _errors(InitializationFailed, create_communicator)[0]


def alone_at_the_rendezvous(comm):
    """Rank 1 creates no communicator; rank 0 gives up at its limit, and then for a signal."""
    from mpi4py import MPI

    from cobre_comm.backends.mpi import rendezvous

    world, caught = MPI.COMM_WORLD, []
    if world.rank == 0:
        rendezvous.START_TIMEOUT_S = 0.2
        caught = _errors(InitializationFailed, lambda: MpiBackend(config=MpiConfig(timeout_s=0.1)))
        interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        interrupt.start()
        if isinstance(met(create_communicator), KeyboardInterrupt):
            caught.append("interrupted")
    world.send(None, 1 - world.rank)
    world.recv(source=1 - world.rank)
    if world.rank == 1:  # what rank 0 has begun ends, so MPI can be finalized
        world.Ibarrier().Wait()
        world.Ibarrier().Wait()
    return caught


def error_of_mpi(comm):
    """MPI is handed a datatype that is none; return what it says, and its own words."""
    import ctypes

    from mpi4py import MPI

    ours = create_communicator()
    ours.barrier()
    none = ctypes.c_int64(MPI._handleof(MPI.DATATYPE_NULL)).value
    ours._comm.mpi.byte = none
    caught = raises(CollectiveFailed, ours.barrier)
    later = _errors(InvalidCommunicator, ours.barrier)
    code = caught.mpi_error_code
    return caught, later, MPI.Get_error_class(code) == MPI.ERR_TYPE, MPI.Get_error_string(code)


def in_odd_orders(comm, rounds):
    """Communicators, halves and regions, closed in other orders on other ranks, or never."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2)
    kept = []
    for number in range(rounds):
        ours = create_communicator()
        mine, local = MpiBackend(half), ours.split_local()
        nested = local.split_local()
        regions = [made.create_shared_region(100 + number) for made in (ours, mine, local)]
        regions[0].fence()
        sequences.four_in_a_row(nested, "python")
        things = [ours, mine, local, nested, *regions]
        first = (number + world.rank) % len(things)
        for thing in things[first:] + things[:first]:
            thing.close()
        if number % 3 == 0:
            kept.append(create_communicator())
        if number % 4 == 0 and kept:
            kept.pop(0)
    return len(kept)


def many_in_turn(comm, count):
    """More communicators, one after the other, than MPI can have at the same time."""
    for _ in range(count):
        with create_communicator() as ours:
            ours.barrier()


def many_parents_in_turn(comm, count):
    """The caller frees what ours was made over, as soon as ours is closed."""
    from mpi4py import MPI

    for number in range(count):
        part = MPI.COMM_WORLD.Split(0, key=number)
        with MpiBackend(part) as ours:
            ours.barrier()
        part.Free()


def bytes_from_sockets(comm, size_bytes):
    """Return what TCP sockets of this process receive while rank 0 broadcasts."""
    buffer = np.zeros(size_bytes, dtype=np.uint8)
    comm.broadcast(buffer)  # connected from now on
    before = _received()
    comm.broadcast(buffer)
    return _received() - before


def _received():
    received = 0
    for path in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as each:
            told = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED.stop)
            received += int.from_bytes(told[BYTES_RECEIVED], sys.byteorder)
    return received


def names_in_shared_memory(comm):
    """Return the names of our memory that this rank has mapped while a region is in use."""
    ours = create_communicator()
    with ours.create_shared_region(1000) as region:
        region.fence()
        maps = pathlib.Path("/proc/self/maps").read_text()
        mapped = set(re.findall(r"/dev/shm/cobre-\S*", maps))
        names = [name for name in mapped if pathlib.Path(name).exists()]
    ours.barrier()
    ours.close()
    return names
