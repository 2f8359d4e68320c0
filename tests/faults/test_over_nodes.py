"""A rank is lost, late or wrong on a node of several ranks, while other nodes wait for it."""

import ctypes
import mmap
import os
import resource
import signal
import time

import numpy as np
import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.case import OURS
from cobre_comm.testing.cases.faults import struck
from cobre_comm.testing.cases.faults.calling import prepare
from cobre_comm.testing.cases.faults.strike import EXIT_CODE, signal_in
from cobre_comm.testing.cases.memory import into_regions
from cobre_comm.testing.cases.raised import met
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.campaign.__main__ import warm
from tests.campaign.work import work
from tests.grid import skip_unless_here, slow, some, timeout_of

COUNT = 2**15  # elements: many chunks on every transport, because buffers are small
FOLLOWER = 1
LIMIT_S = 3.0
LONG = 2**17  # numbers; a rank needs longer to copy these than to wake another rank


@pytest.fixture(params=["tcp:0,0,1", *map(slow, ("mpi-mpich:0,0,1", "mpi-openmpi:0,0,1"))])
def nodes(request):
    return skip_unless_here(request.param)


def assert_named(caught, lost):
    """The error names the lost rank, and perhaps ranks that have ended by their own error."""
    assert isinstance(caught, CollectiveFailed), repr(caught)
    assert lost in caught.ranks, str(caught)


@pytest.mark.parametrize("kind", ["raised", "in_prange"])
def test_follower(nodes, kind, tmp_path):
    warm()
    fault = struck.complete(struck.at(kind, FOLLOWER), 3, backend=nodes)
    outcomes = forked.ranks(nodes, 3, work, "mixed", fault, str(tmp_path))
    struck.check(fault, outcomes)


def lost_before(comm, operation):
    """A follower ends before the others enter the call; return the error of any other rank."""
    region = comm.create_shared_region(40)
    comm.barrier()
    if comm.rank == FOLLOWER:
        os._exit(EXIT_CODE)
    if operation == "fence":
        return met(region.fence)
    return met(comm.allreduce, np.ones(40), region.part(0, 40))


@pytest.mark.parametrize("operation", ["fence", "allreduce into a region"])
def test_follower_that_has_ended(nodes, operation):
    first, lost, other = forked.ranks(nodes, 3, lost_before, operation)
    assert lost.exit_code == EXIT_CODE
    assert_named(first.value, FOLLOWER)
    if operation == "fence":  # only the ranks of one node meet in a fence
        assert other.value is None
    else:
        assert_named(other.value, FOLLOWER)


def stopped_before_it_fetches(comm):
    """A follower that awaits its leader is stopped until the leader has given it up."""
    pids = prepare(comm, "python")
    if comm.rank == FOLLOWER:
        signal_in(LIMIT_S / 10, signal.SIGSTOP)
    else:
        time.sleep(LIMIT_S / 3)
    if comm.rank == comm.size - 1:
        comm.barrier()  # all ranks have entered this barrier, so this rank returns
    caught = met(comm.barrier)
    if comm.rank == 0:
        os.kill(pids[FOLLOWER], signal.SIGCONT)
    return caught


def test_follower_that_does_not_fetch_the_outcome(nodes):
    """The follower is late for its leader; when the follower continues, its leader has gone."""
    body, env = stopped_before_it_fetches, timeout_of(LIMIT_S)
    first, follower, other = values_of(forked.ranks(nodes, 3, body, env=env))
    assert_named(first, FOLLOWER)
    assert OURS.timeout_variable(nodes) in str(first)
    assert_named(follower, 0)
    assert isinstance(other, CollectiveFailed)
    assert set(other.ranks) <= {0, FOLLOWER}


def half_readable(count):
    """Return zeros; a process that reads the second half of this array is ended by a signal."""
    half_bytes, memory = 4 * count, mmap.mmap(-1, 8 * count)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(begin + half_bytes), ctypes.c_size_t(half_bytes), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory)


def crash_amid(comm, operation, victim):
    """The victim crashes when half of a long call is done; return the error of any other rank."""
    root, into_region = victim, operation == "allreduce into a region"
    recv = np.zeros(comm.size * COUNT)
    tables = np.full(comm.size, COUNT), COUNT * np.arange(comm.size)
    region = comm.create_shared_region(COUNT)
    send = np.ones(COUNT)
    if comm.rank == victim:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        send = half_readable(COUNT)
    comm.barrier()
    if operation == "allgatherv":
        return met(comm.allgatherv, send, recv, *tables)
    if operation == "gatherv":
        return met(comm.gatherv, send, recv, *tables, (root + 1) % comm.size)
    if operation == "broadcast":
        return met(comm.broadcast, send, root)
    return met(comm.allreduce, send, region.part(0, COUNT) if into_region else recv[:COUNT])


LARGE = ("allreduce", "gatherv", "allgatherv", "broadcast")
ONE_NODE = ("allreduce", "allreduce into a region", "gatherv", "allgatherv", "broadcast")


CRASHED_DAILY = [
    ("shm", 3, "allreduce into a region", 2),
    ("shm", 3, "allgatherv", 2),
    ("tcp:0,0,1", 3, "allreduce", FOLLOWER),  # data moves along a chain of leaders
    ("tcp:0,1", 4, "allreduce", 3),  # data moves in stripes, through the staging buffer
    ("tcp:0,0,1,1x2", 4, "gatherv", 3),  # the victim leads its node in a lane
]
CRASHED = [
    *(("shm", 3, operation, 2) for operation in ONE_NODE),
    *(("tcp:0,0,1,1x2", 4, operation, 3) for operation in LARGE),
    ("tcp:0,0,1,1x2", 4, "allgatherv", 0),
]


@pytest.mark.parametrize(("backend", "size", "operation", "victim"), some(CRASHED_DAILY, CRASHED))
def test_crashed_amid_a_call(backend, size, operation, victim):
    outcomes = forked.ranks(
        backend, size, crash_amid, operation, victim, env=OURS.environment("small")
    )
    assert outcomes.pop(victim).exit_code == -signal.SIGSEGV
    for outcome in outcomes:
        assert_named(outcome.value, victim)
        assert outcome.value.operation == operation.partition(" ")[0]


def test_long_outputs_of_a_node(nodes):
    """One rank of a node writes a long output while the other rank of this node sleeps."""
    values_of(forked.ranks(nodes, 3, into_regions.reduce, "mixed", "all", "f8", LONG))
