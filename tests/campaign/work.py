"""The body of a rank in the campaign: how the rank starts, takes its steps, and ends."""

import functools
import gc
import pathlib
import threading
import time

import numpy as np
from numba import float64, njit, objmode

from cobre_comm import ReduceOp, create_communicator
from cobre_comm.jit.types import CommType
from cobre_comm.testing.cases.faults import steps
from cobre_comm.testing.cases.faults.fault import CLOSE, LAST, START, told
from cobre_comm.testing.cases.faults.work import LONGEST_S, Worker
from tests.campaign.kinds import ASTRAY, SIGNALS
from tests.faults.odd import descriptors

_LAST = []


def work(comm, caller, fault, folder, rank=None):
    """Be a rank of a job that a fault strikes; return the account.

    If ``comm`` is None, the rank makes a communicator from its environment. If ``rank`` is None,
    the communicator tells the number of the rank, or MPI tells it if there is no communicator.
    """
    if rank is None:
        rank = _rank_of_mpi() if comm is None else comm.rank
    return WholeWorker(comm, caller, fault, folder, rank).account()


def _rank_of_mpi():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


class WholeWorker(Worker):
    """A rank that a fault may also strike at the start, in a compiled call, or at the end."""

    def __init__(self, comm, *rest):
        super().__init__(comm, *rest)
        self.owns = comm is None
        self.before = descriptors()

    def begin(self):
        if self.owns:
            if self.fault.moment == START:
                self.strike()
            self.entered = time.monotonic()
            self.comm = create_communicator()
        super().begin()

    def has_struck(self):
        comes_later = self.fault.kind in SIGNALS and self.fault.moment != CLOSE
        return super().has_struck() and (not comes_later or "ended" in told(self.folder, "outside"))

    def is_harmless(self):
        is_harmless = self.kind.promise != ASTRAY and super().is_harmless()
        return self.fault.moment == CLOSE or is_harmless

    def met(self, step):
        return step._replace(operation="last") if self.fault.moment == LAST else super().met(step)

    def strikes_in(self, step):
        return self.fault.moment not in (START, CLOSE) and super().strikes_in(step)

    def take(self, step):
        if step.operation == "last":
            _hold_in_call_alone(self.comm, step)
        else:
            super().take(step)

    def end(self):
        if self.fault.moment == CLOSE:
            self.strike()
        super().end()
        if self.victim and self.kind.exit_code < 0:
            time.sleep(LONGEST_S)  # the signal arrives while the rank closes, or soon afterwards

    def try_later(self):
        # at LAST, only the call held the communicator that broke, so it is gone now
        if self.fault.moment != LAST:
            super().try_later()

    def close_communicator(self):
        if self.comm is not None:
            super().close_communicator()
        if self.owns:
            self.comm = None
            gc.collect()
            left = sorted(descriptors() - self.before) + maps()
            self.ledger.tell(left=left, threads=threading.active_count())


@functools.cache
def reduce_on_last():
    """Return a compiled allreduce on a communicator that it takes from a list, and holds alone."""
    kind = CommType()

    @njit
    def reduce(send, recv):
        with objmode(comm=kind):
            comm = _LAST.pop()
        held = [comm]
        held.pop().allreduce(send, recv)

    reduce.compile((float64[::1], float64[::1]))
    return reduce


def _hold_in_call_alone(comm, step):
    recv = np.zeros(step.length)
    reduce = reduce_on_last()
    try:
        _LAST.append(comm.split(0))
        reduce(steps.data(comm.rank, step.number, step.length), recv)
    finally:
        _LAST.clear()  # the fault may have struck before the call took the communicator
    steps.compare(step, recv, steps.folded(step._replace(dtype="f8", op=ReduceOp.SUM), comm.size))


def maps():
    """Return the names of shared memory that this process maps, without semaphores."""
    path = pathlib.Path("/proc/self/maps")
    lines = path.read_text().splitlines() if path.exists() else []
    names = {line.split(None, 5)[5] for line in lines if "/dev/shm/" in line}
    return sorted(name for name in names if "/dev/shm/sem." not in name)
