"""What every rank of a job does that a fault meets: right steps, and an account of what it met."""

import atexit
import gc
import os
import pathlib
import random
import signal
import threading
import time

from cobre_comm import BackendError, CommError, create_communicator
from cobre_comm.testing.cases.calls import OPERATIONS
from cobre_comm.testing.cases.faults import steps
from cobre_comm.testing.cases.faults.calling import collective
from cobre_comm.testing.cases.faults.fault import (
    CLOSE,
    LAST,
    REGION,
    SPLIT,
    START,
    STEP,
    Ledger,
    await_fact,
    told,
)
from cobre_comm.testing.cases.faults.kinds import ASTRAY, HARMFUL, KINDS
from cobre_comm.testing.cases.faults.strike import Alarmed, Victim, end_children
from cobre_comm.testing.cases.raised import met

MET = (CommError, BackendError, KeyboardInterrupt, Alarmed, MemoryError, OSError, steps.Wrong)
LONGEST_S = 20.0  # a fault that nobody has met by then has been missed
DAWDLE_S = 0.003


def work(comm, caller, fault, folder, rank=None):
    """Be a rank of a job that a fault meets; return the account.

    Parameters
    ----------
    comm : Communicator or None
        None: make it here, from the environment.
    caller : str
        As the table of cases has it.
    fault : Fault
        What befalls whom.
    folder : str
        Empty at first; ranks write their accounts there.
    rank : int
        Which this is; None where the communicator tells, or MPI.
    """
    began = time.monotonic()
    if rank is None:
        rank = _rank_of_mpi() if comm is None else comm.rank
    worker = _Worker(comm, caller, fault, folder, rank)
    worker.ledger.tell(pid=os.getpid(), began=began)
    worker.do_all()
    return told(folder, worker.rank)


def _rank_of_mpi():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


class _Worker:
    def __init__(self, comm, caller, fault, folder, rank):
        self.comm, self.caller, self.fault, self.folder, self.rank = (
            comm, caller, fault, folder, rank,
        )  # fmt: skip
        self.ledger = Ledger(folder, rank)
        self.kind = KINDS[fault.kind]
        self.pid, self.number, self.entered = os.getpid(), -1, time.monotonic()
        self.owns = comm is None
        self.before = descriptors()
        self.draw = random.Random(f"{fault.seed} {rank}")
        self.victim = None
        self._moment_of_step = fault.moment if fault.moment in (REGION, SPLIT, LAST) else STEP

    def do_all(self):
        try:
            self._begin()
            self._take_steps()
            self._end()
        except MET as error:
            self._leave_if_child()
            self._note(error)
        self._leave_if_child()  # of a handler that ran while this rank closed
        self._try_later()
        self._tidy()
        self._close()
        self._leave_if_child()

    def _begin(self):
        if self.owns:
            self._strike_at(START)
            self.entered = time.monotonic()
            self.comm = create_communicator()
        self.ledger.tell(met=time.monotonic())

    def _take_steps(self):
        until = time.monotonic() + (self.fault.lasts_s if self._is_harmless() else LONGEST_S)
        for step in steps.steps(self.fault.seed, self.fault.size):
            self.number = step.number
            if self.draw.random() < 0.1:
                time.sleep(self.draw.random() * DAWDLE_S)
            if step.number == self.fault.step:
                step = self._met(step)
            self.entered = time.monotonic()
            if step.number != self.fault.step or not self._strike_at(self._moment_of_step):
                self._take(step)
            self._leave_if_child()
            if step.number % steps.PERIOD == steps.PERIOD - 1 and self._are_done(until):
                break
        self.ledger.tell(steps=self.number)

    def _are_done(self, until):
        is_over = self.number > self.fault.step and time.monotonic() > until
        if self._is_harmless():  # the victim knows when
            is_over = is_over and self.rank == self.fault.victim and self._has_struck()
        return steps.agree_that_over(self.comm, self.caller, self.number, is_over)

    def _has_struck(self):
        at_the_end = self.fault.moment == CLOSE
        return at_the_end or not self.kind.signal or "ended" in told(self.folder, "outside")

    def _is_harmless(self):
        return self.fault.moment == CLOSE or self.kind.promise not in HARMFUL

    def _met(self, step):
        """Return the step at which the fault strikes."""
        if self.fault.moment == REGION:
            return step._replace(operation="region", length=steps.REGION_ELEMENTS[-1])
        if self.fault.moment == SPLIT:
            return step._replace(operation="split")
        if self.fault.moment == LAST:
            return step._replace(operation="last")
        if self.kind.operation:
            return step._replace(operation=self.kind.operation, length=5, dtype="f8",
                                 op=steps.ReduceOp.SUM, root=0)  # fmt: skip
        return step

    def _take(self, step):
        if step.operation == "meet":  # in a barrier, once the victim's second thread was refused
            await_fact(self.folder, [self.fault.victim], "refused")
            self.comm.barrier()
        else:
            steps.take(self.comm, step, self.caller)

    def _strike_at(self, moment):
        """Strike, if this is the victim and the moment; return whether that was its whole step."""
        if self.rank not in self.fault.victims or moment != self.fault.moment:
            return False
        self.victim = Victim(self.fault, self.folder, self.ledger, self.comm)
        self.kind.strike(self.victim)
        return self.kind.promise == ASTRAY or self.kind.operation == "meet"

    def _end(self):
        if self.fault.moment == CLOSE:
            self._strike_at(CLOSE)
        self.entered = time.monotonic()
        self.comm.close()
        self.ledger.tell(closed=time.monotonic())
        if self.victim and self.kind.exit_code < 0:
            time.sleep(LONGEST_S)  # the signal comes while it closes, or soon after

    def _note(self, error):
        at = time.monotonic()
        self.ledger.tell(
            steps=self.number,
            caught={
                "error": type(error).__name__,
                "operation": getattr(error, "operation", ""),
                "ranks": list(getattr(error, "ranks", ())),
                "text": str(error),
                "at": at,
                "entered": self.entered,
                "step": self.number,
            },
            struck_by=told(self.folder, self.fault.victim).get("struck"),
        )

    def _try_later(self):
        """Note the error of each later collective, if an earlier one broke the communicator."""
        caught = told(self.folder, self.rank).get("caught", {})
        if caught.get("error") not in ("CollectiveFailed", "InvalidBufferSize"):
            return
        if self.fault.moment == LAST:
            return  # what broke was held by the call alone
        began = time.monotonic()
        errors = [met(collective, self.comm, self.caller, name) for name in OPERATIONS]
        later = [f"{type(error).__name__}: {error}" for error in errors]
        self.ledger.tell(later=later, took=time.monotonic() - began)

    def _tidy(self):
        """The lowest survivor ends what is left of the victim, once all others have their error."""
        others = self.fault.others
        facts = told(self.folder, self.fault.victim)
        if self.rank != others[0] or not (self.fault.kind == "stopped" or "orphans" in facts):
            return
        if KINDS[self.fault.kind].promise in HARMFUL:
            await_fact(self.folder, others, "caught")
            end_children(self.folder, self.fault.victim)
        if self.fault.kind == "stopped":
            os.kill(facts["pid"], signal.SIGCONT)

    def _close(self):
        if self.victim:
            self.victim.end()
        if self.comm is not None:
            self.comm.close()
        if self.owns:
            self.comm = None
            gc.collect()
            left = sorted(descriptors() - self.before) + maps()
            self.ledger.tell(left=left, threads=threading.active_count())
        self.ledger.tell(done=time.monotonic())

    def _leave_if_child(self):
        """End a child that goes on as its parent would; it must take no order of the parent's."""
        if os.getpid() != self.pid:
            refused = [str(met(self.comm.barrier))]
            self.comm.close()
            atexit._run_exitfuncs()
            self.ledger.tell(refused=refused)
            os._exit(0)


def descriptors():
    """Return what this process has open, by number and name."""
    folder, found = pathlib.Path("/proc/self/fd"), set()
    for path in folder.iterdir() if folder.exists() else []:
        try:
            found.add(f"{path.name} {path.readlink()}")
        except OSError:
            continue  # of this very loop
    return found


def maps():
    """Return the shared memory that this process still has mapped, but for others' semaphores."""
    path = pathlib.Path("/proc/self/maps")
    lines = path.read_text().splitlines() if path.exists() else []
    names = {line.split(None, 5)[5] for line in lines if "/dev/shm/" in line}
    return sorted(name for name in names if "/dev/shm/sem." not in name)
