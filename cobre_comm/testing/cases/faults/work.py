"""The body of each rank of a job that a fault strikes: verified steps, and the rank's account."""

import atexit
import os
import random
import signal
import time

from cobre_comm import BackendError, CommError
from cobre_comm.testing.cases.faults import steps
from cobre_comm.testing.cases.faults.calling import later_errors
from cobre_comm.testing.cases.faults.fault import REGION, SPLIT, Ledger, await_fact, told
from cobre_comm.testing.cases.faults.kinds import HARMFUL, KINDS
from cobre_comm.testing.cases.faults.strike import Alarmed, Victim, end_children
from cobre_comm.testing.cases.raised import met

MET = (CommError, BackendError, KeyboardInterrupt, Alarmed, MemoryError, OSError, steps.Wrong)
LONGEST_S = 20.0  # a fault that no rank has noticed after this time has been missed
DAWDLE_S = 0.003
RUN_ON_S = 0.03  # the other ranks run on for so long before a rank looks at its output again
RUNNING_CLOCK = time.monotonic  # a fault may replace the clocks in the module `time`


class Worker:
    """A rank of a job that a fault strikes; each rank writes its account into a folder."""

    def __init__(self, comm, caller, fault, folder, rank):
        self.comm, self.caller, self.fault, self.folder, self.rank = (
            comm, caller, fault, folder, rank,
        )  # fmt: skip
        self.ledger = Ledger(folder, rank)
        self.kind = KINDS[fault.kind]
        self.pid, self.number, self.entered = os.getpid(), -1, time.monotonic()
        self.draw = random.Random(f"{fault.seed} {rank}")
        self.victim = None
        steps.look_again()  # forgets what an earlier job has left in this process
        self.ledger.tell(pid=self.pid)

    def account(self):
        """Run the whole body of a rank; return its account."""
        self._do_all()
        return told(self.folder, self.rank)

    def _do_all(self):
        try:
            self.begin()
            self._take_steps()
            self.end()
        except MET as error:
            self._leave_if_child()
            self._note(error)
        self._leave_if_child()  # a handler may have forked a child while this rank closed
        self.try_later()
        self._tidy()
        self._look()
        self._close()
        self._leave_if_child()

    def begin(self):
        if self.fault.way >= 0:
            self.comm._comm.node.forced_way = self.fault.way
        self.ledger.tell(met=time.monotonic())

    def _take_steps(self):
        until = RUNNING_CLOCK() + (self.fault.lasts_s if self.is_harmless() else LONGEST_S)
        for step in steps.steps(self.fault.seed, self.fault.size, self.fault.large_bytes):
            self.number = step.number
            if self.draw.random() < 0.1:
                time.sleep(self.draw.random() * DAWDLE_S)
            if step.number == self.fault.step:
                step = self.met(step)
            self.entered = time.monotonic()
            if not (self.strikes_in(step) and self.strike()):
                self.take(step)
            self._leave_if_child()
            if step.number % steps.PERIOD == steps.PERIOD - 1 and self._are_done(until):
                break
        self.ledger.tell(steps=self.number)

    def _are_done(self, until):
        is_over = self.number > self.fault.step and RUNNING_CLOCK() > until
        return steps.agree_that_over(
            self.comm, self.caller, self.number,
            is_over and (not self.is_harmless() or self.has_struck()),
        )  # fmt: skip

    def has_struck(self):
        """Whether the fault has struck; only the victim can tell, other ranks return False.

        A fault may be a signal, which strikes when its handler runs. On a busy machine the handler
        may run later than the ranks meant to stop, so they work on until the victim tells.
        """
        return self.rank == self.fault.victim and not (self.victim and self.victim.is_due)

    def is_harmless(self):
        return self.kind.promise not in HARMFUL

    def met(self, step):
        """Return the step at which the fault strikes: the given step, or a changed one."""
        if self.fault.moment == REGION:
            return step._replace(operation="region", length=steps.REGION_ELEMENTS[-1])
        if self.fault.moment == SPLIT:
            return step._replace(operation="split")
        if self.kind.operation:
            return step._replace(operation=self.kind.operation, length=5, dtype="f8",
                                 op=steps.ReduceOp.SUM, root=0)  # fmt: skip
        if self.fault.large_bytes:
            return steps.enlarged(step, self.fault.size, self.fault.large_bytes)
        return step

    def take(self, step):
        if step.operation == "meet":  # a barrier, after the victim's thread was refused
            await_fact(self.folder, [self.fault.victim], "refused")
            self.comm.barrier()
        else:
            steps.take(self.comm, step, self.caller)

    def strikes_in(self, step):
        return step.number == self.fault.step

    def strike(self):
        """Strike if this rank is a victim; return whether the fault has replaced the step."""
        if self.rank not in self.fault.victims:
            return False
        self.victim = Victim(self.fault, self.folder, self.ledger, self.comm)
        self.kind.strike(self.victim)
        return bool(self.kind.operation)

    def end(self):
        self.entered = time.monotonic()
        self.comm.close()
        self.ledger.tell(closed=time.monotonic())

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

    def try_later(self):
        """Note the error of each later collective, if an earlier one broke the communicator."""
        caught = told(self.folder, self.rank).get("caught", {})
        if caught.get("error") not in ("CollectiveFailed", "InvalidBufferSize"):
            return
        later, took = later_errors(self.comm, self.caller)
        self.ledger.tell(later=later, took=took)

    def _tidy(self):
        """When all others have their error, the lowest survivor ends what the victim has left."""
        others = self.fault.others
        facts = told(self.folder, self.fault.victim)
        if self.rank != others[0] or not (self.fault.kind == "stopped" or "orphans" in facts):
            return
        if self.kind.promise in HARMFUL:
            await_fact(self.folder, others, "caught")
            end_children(self.folder, self.fault.victim)
        if self.fault.kind == "stopped":
            os.kill(facts["pid"], signal.SIGCONT)

    def _look(self):
        """Note if the output of a call was written to after the call had failed on this rank."""
        if self.fault.large_bytes:
            if self.fault.kind == "stopped":  # by now, or soon, the victim runs on
                await_fact(self.folder, self.fault.victims, "caught", 2.0)
            time.sleep(RUN_ON_S)
        if not steps.look_again():
            self.ledger.tell(written=True)

    def _close(self):
        if self.victim:
            self.victim.end()
        self.close_communicator()
        self.ledger.tell(done=time.monotonic())

    def close_communicator(self):
        self.comm.close()

    def _leave_if_child(self):
        """End a forked child: it runs its parent's code, and must not act as the rank."""
        if os.getpid() != self.pid:
            refused = [str(met(self.comm.barrier))]
            self.comm.close()
            atexit._run_exitfuncs()
            self.ledger.tell(refused=refused)
            os._exit(0)
