"""Strike a rank: send it a signal at an exact moment, end it, fork it, or use up a resource."""

import contextlib
import ctypes
import faulthandler
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.calls import OPERATIONS, calls
from cobre_comm.testing.cases.faults.calling import collective
from cobre_comm.testing.cases.faults.fault import await_fact, told
from cobre_comm.testing.cases.raised import met

CHILD_LIVES_S = 120  # longer than any test waits for an error; a test ends these children before
EXIT_CODE = 7
ALARM = signal.SIGUSR2
LATER_S = 0.01


class Alarmed(BaseException):
    """The exception that a user's signal handler raises."""


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )  # fmt: skip


def signal_in(delay_s, number, every_s=0.0):
    """Make the system send this process a signal after a delay, and then, if asked, at intervals.

    The system's timer sends the signal, so the moment does not depend on the GIL. Where there is no
    such timer (macOS), a thread sends the signal. Return a function that ends the signals.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        create, settime = libc.timer_create, libc.timer_settime
    except AttributeError:
        thread = threading.Timer(delay_s, os.kill, (os.getpid(), number))
        thread.start()
        return thread.cancel
    event, timer = _Sigevent(signo=number), ctypes.c_void_p()
    if create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    times = [part for s in (every_s, max(delay_s, 1e-6)) for part in (int(s), int(s % 1 * 1e9))]
    settime(timer, 0, (ctypes.c_long * 4)(*times), None)
    return lambda: settime(timer, 0, (ctypes.c_long * 4)(), None)


def end_children(folder, rank):
    """Kill the orphans and programs that a rank has left behind."""
    facts = told(folder, rank)
    for pid in (*facts.get("orphans", ()), *facts.get("programs", ())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_compiling(frame):
    """Whether a handler has interrupted numba or LLVM.

    If the handler forked there, the child would wait for the locks of LLVM for ever. The child
    would also write a file of numba's cache that its parent writes too: both continue at the same
    position of one open file.
    """
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("numba.core.", "llvmlite.")):
            return True
        frame = frame.f_back
    return False


def _would_hang(fork):
    """Whether a child that is forked now would hang in CPython itself.

    When another thread, such as that of a split over MPI, asks for the GIL, the main thread hands
    the GIL over and waits until that thread has it. In a child that thread does not exist, and only
    ``os.fork`` tells the child's interpreter that it is gone.
    """
    return fork is not os.fork and threading.active_count() > 1


class Victim:
    """A rank that a fault strikes; most kinds of faults are a method of this class.

    A victim that is struck while ranks meet has no communicator.
    """

    def __init__(self, fault, folder, ledger, comm):
        self.fault, self.folder, self.ledger, self.comm = fault, folder, ledger, comm
        self._end_signals = lambda: None
        self.taken = contextlib.ExitStack()  # restores what the fault has changed
        self.is_due = False  # a signal is under way, and its handler must run before the work ends

    def send(self, number, every_s=0.0, least_s=0.0):
        delay_s = max(self.fault.delay_s, least_s)
        self.ledger.tell(struck=time.monotonic() + delay_s)
        self._end_signals = signal_in(delay_s, number, every_s)

    def send_later(self, number):
        """Send a signal again after a pause, in which numba gets on."""
        self.send(number, least_s=LATER_S)

    def end(self):
        """Stop the signals, restore what was changed, and await what a forked child reports."""
        self._end_signals()
        self.taken.close()
        children = told(self.folder, self.fault.victim).get("children")
        if children and not await_fact(self.folder, [self.fault.victim], "refused"):
            self.ledger.tell(silent=[self._doings(child) for child in children])
        end_children(self.folder, self.fault.victim)
        if signal.getsignal(ALARM) is not signal.SIG_DFL:
            signal.signal(ALARM, signal.SIG_IGN)

    def _doings(self, child):
        """Return what a silent child is doing: its stacks, and what the system says of it."""
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGUSR1)
            time.sleep(0.5)
            stacks = pathlib.Path(self.folder, "stacks").read_text()
            states = [pathlib.Path(f"/proc/{child}/{x}").read_text() for x in ("stat", "syscall")]
            return [stacks, *states]
        return "it has ended"

    def _interrupt(self, number, handler):
        """Let a handler raise, but not while LLVM calls Python: the process would end."""

        def later_if_compiling(number, frame):
            if _is_compiling(frame):
                self.send_later(number)
            else:
                handler(number, frame)

        signal.signal(number, later_if_compiling)
        # If a handler raises while an object is being deleted, Python ignores the exception, and
        # calls only this hook.
        self.taken.callback(setattr, sys, "unraisablehook", sys.unraisablehook)

        def again(ignored):
            self.ledger.tell(ignored_in=repr(ignored.object))
            self.send_later(number)

        sys.unraisablehook = again
        self.send(number)

    def on_alarm(self, handler, every_s=0.0):
        signal.signal(ALARM, handler)
        self.send(ALARM, every_s)

    def now(self):
        self.ledger.tell(struck=time.monotonic())
        sys.stdout.flush()

    # Kinds of faults that end the victim.
    def crash(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest's handler would print stacks
        self.send(signal.SIGSEGV)

    def close(self):
        self.now()
        self.comm.close()

    def exit_in_handler(self):
        self.on_alarm(lambda *_: os._exit(EXIT_CODE))

    # Kinds of faults that interrupt a wait.
    def interrupt(self):
        self._interrupt(signal.SIGINT, signal.default_int_handler)

    def alarm(self):
        def handler(*_):
            raise Alarmed("from the handler")

        self._interrupt(ALARM, handler)

    # Kinds of faults that make the victim late.
    def late(self):
        self.now()
        await_fact(self.folder, self.fault.others, "caught")

    # Kinds of faults that must not matter.
    def signals(self):
        def handler(*_):
            self.is_due = False

        self.is_due = True
        self.on_alarm(handler, 0.001)

    def children(self):
        self.now()
        self._leave_child(os.fork)
        self._leave_program()

    def use_in_child(self, fork):
        self.now()
        child = fork()
        if child == 0:
            self._child_tries()
        self.ledger.tell(children=[child])

    def fork_in_handler(self, fork):
        """Fork in a signal handler; the child continues the collective, and ``work`` ends it."""
        stacks = self.taken.enter_context(pathlib.Path(self.folder, "stacks").open("w"))  # noqa: SIM115
        faulthandler.register(signal.SIGUSR1, stacks)  # the child writes its stacks to this file
        self.taken.callback(faulthandler.unregister, signal.SIGUSR1)

        def handler(_, frame):
            if _is_compiling(frame) or _would_hang(fork):
                self.send_later(ALARM)
            else:
                self.is_due = False
                if child := fork():
                    self.ledger.tell(children=[child])

        self.is_due = True
        self.on_alarm(handler)

    def second_thread(self):
        """A thread calls a barrier while the main thread is in one; one of the calls is refused.

        The other ranks enter their barrier only after the refusal, so the main thread cannot leave
        before.
        """

        def enter():
            time.sleep(0.02)
            try:
                calls("python").barrier(self.comm)
            except InvalidCommunicator as error:
                self.ledger.tell(refused=[str(error)])

        self.now()
        thread = threading.Thread(target=enter)
        thread.start()
        try:
            self.comm.barrier()
        except InvalidCommunicator as error:
            self.ledger.tell(refused=[str(error)])
        thread.join()

    def orphan(self, fork):
        """A forked child holds all descriptors, and continues to live when the rank is killed."""
        self._leave_child(fork)
        self.send(signal.SIGKILL)

    def _leave_child(self, fork):
        child = fork()
        if child == 0:
            time.sleep(CHILD_LIVES_S)
            os._exit(0)
        self.ledger.tell(orphans=[child])

    def _leave_program(self):
        program = subprocess.Popen(["sleep", str(CHILD_LIVES_S)], stdin=subprocess.DEVNULL)
        program.returncode = 0  # the program outlives this rank, so nobody waits for it
        self.ledger.tell(programs=[program.pid])

    def _child_tries(self):
        """Make calls in a forked child, and note with which error each is refused."""
        refused, comm = [], self.comm
        others = (
            comm.split_local,
            partial(comm.split, 0),
            lambda: comm.create_shared_region(3, np.float64),
        )
        try:
            for call in (*(partial(collective, comm, "python", n) for n in OPERATIONS), *others):
                refused.append(str(met(call)))
            comm.close()
        finally:
            self.ledger.tell(refused=refused)
            os._exit(0)
