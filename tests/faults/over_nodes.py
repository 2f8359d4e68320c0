"""Faults that strike a rank of several nodes, or strike in a call that takes many steps."""

import ctypes
import mmap
import os
import resource
import signal
import time

import numpy as np

from cobre_comm.testing.cases.faults.calling import prepare
from cobre_comm.testing.cases.faults.judge import Judge as CasesJudge
from cobre_comm.testing.cases.faults.strike import EXIT_CODE, signal_in
from cobre_comm.testing.cases.faults.work import Worker
from cobre_comm.testing.cases.raised import met
from tests.campaign.kinds import KINDS
from tests.campaign.strike import OddVictim

COUNT = 2**15  # elements: with small buffers many chunks on every transport
FOLLOWER = 1
LIMIT_S = 3.0


class Judge(CasesJudge):
    """A judge that knows the campaign's kinds of faults."""

    kinds = KINDS


class StruckWorker(Worker):
    """A rank that a fault of the campaign may strike."""

    kinds, victims = KINDS, OddVictim


def struck(comm, caller, fault, folder):
    """Work until the fault has struck; return the account of this rank."""
    return StruckWorker(comm, caller, fault, folder, comm.rank).account()


def half_readable(count):
    """Return an array of zeros whose second half cannot be read: reading it ends the process."""
    half_bytes, memory = 4 * count, mmap.mmap(-1, 8 * count)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(begin + half_bytes), ctypes.c_size_t(half_bytes), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory)


def crash_amid(comm, operation, victim):
    """One rank crashes when half of a long call is done; return the error of this rank."""
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
    return met(comm.allreduce, send, region.block(0, COUNT) if into_region else recv[:COUNT])


def lost_before(comm, operation):
    """A follower ends before the others enter; return the error of this rank."""
    region = comm.create_shared_region(40)
    comm.barrier()
    if comm.rank == FOLLOWER:
        os._exit(EXIT_CODE)
    if operation == "fence":
        return met(region.fence)
    return met(comm.allreduce, np.ones(40), region.block(0, 40))


def stopped_before_it_fetches(comm):
    """A follower that awaits its leader is stopped until the leader has given it up."""
    pids = prepare(comm, "python")
    if comm.rank == FOLLOWER:
        signal_in(LIMIT_S / 10, signal.SIGSTOP)
    else:
        time.sleep(LIMIT_S / 3)
    if comm.rank == comm.size - 1:
        comm.barrier()  # all ranks have entered, so this one returns
    caught = met(comm.barrier)
    if comm.rank == 0:
        os.kill(pids[FOLLOWER], signal.SIGCONT)
    return caught
