"""Strikes from outside a job: pauses, signals to its launcher, connections to its ports."""

import contextlib
import os
import pathlib
import random
import signal
import time

import psutil

from cobre_comm.testing.cases.faults.fault import Ledger, await_fact, told
from tests.campaign.fuzzer import Fuzzer
from tests.campaign.kinds import SIGNALS
from tests.faults.tcp.clients import Visitor, listening

PAUSES = 6  # the most pauses in one job
LONGEST_PAUSE_S = 0.15
LATEST_S = 120.0  # how long it may take until the victim arrives at the step at which it is struck


def strike(fault, folder, pids, launcher):
    """Strike a job from outside; return when the strike is over."""
    ledger, dice = Ledger(folder, "outside"), random.Random(fault.seed)
    if fault.kind.startswith("launcher"):
        time.sleep(fault.delay_s)
        _send(launcher, SIGNALS[fault.kind])
        ledger.tell(struck=time.monotonic())
        if fault.kind == "launcher_paused":
            time.sleep(fault.lasts_s)
            _send(launcher, signal.SIGCONT)
    elif fault.kind in SIGNALS:
        if not await_fact(folder, [fault.victim], "struck", LATEST_S):
            return  # the victim has ended already, or a busy machine still compiles
        ranks = pids or [told(folder, rank)["pid"] for rank in range(fault.size)]
        time.sleep(fault.delay_s)
        ledger.tell(struck=time.monotonic())
        for chosen, pause_s in _pauses(fault, dice, ranks):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in chosen:
                    _send(pid, number)
                time.sleep(pause_s if number == signal.SIGSTOP else dice.uniform(0.0, 0.02))
    else:
        return
    ledger.tell(ended=time.monotonic())


def _pauses(fault, dice, pids):
    """Yield processes that are stopped together, and the seconds for which they are stopped."""
    if fault.kind == "suspended":
        yield pids, fault.lasts_s
        return
    for _ in range(dice.randrange(1, PAUSES + 1)):
        some = dice.sample(pids, dice.randrange(1, len(pids)))
        yield some, dice.uniform(0.001, LONGEST_PAUSE_S)


def _send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def visit(fault, port, token):
    """Throw connections at the ports of a job, without end; this runs in a process of its own."""
    visited = set()
    while True:
        for number in ({port} | set(_listening())) - visited:
            visited.add(number)
            fuzzer = Fuzzer(fault.seed, token, fault.size)
            Visitor(number, fuzzer.behave, 0.2).__enter__()
        time.sleep(0.002)


def _listening():
    """Return the ports at which this process's siblings, the processes of the job, listen."""
    known = listening()
    for sibling in psutil.Process().parent().children():
        with contextlib.suppress(OSError):
            for path in pathlib.Path(f"/proc/{sibling.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if where := known.get(str(path.readlink())):
                        yield int(where[1], 16)
