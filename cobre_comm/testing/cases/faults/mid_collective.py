"""SIGKILL and SIGSTOP of each rank at any moment of any collective: all others name it in time."""

import os
import pathlib
import random
import signal
import threading
import time

import numpy as np

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import NEVER, Case, Slow
from cobre_comm.testing.cases.faults.survivors import SLACK_S

LENGTHS = {"small": 500, "large": 300_000}  # elements; over tcp through rank 0, around the ring


def strike(comm, caller, victim, number, time_, folder):
    """All work; the victim sends itself a signal meanwhile. Return the error and when it came."""
    weight = ("large", "small")[time_ % 2]
    pause_s = random.Random(f"{victim} {int(number)} {time_}").uniform(0.01, 0.15)
    made, size, length = calls(caller, comm.rank), comm.size, LENGTHS[weight]
    send, recv, gathered = np.ones(length), np.zeros(length), np.zeros(size * length)
    tables = np.full(size, length), length * np.arange(size)
    pids = np.zeros(size, np.int64)
    comm.allgatherv(np.array([os.getpid()]), pids, np.ones(size, np.int64), np.arange(size))
    struck = pathlib.Path(folder) / "struck"
    rounds = 0
    try:
        while True:
            made.allreduce(comm, send, recv)
            made.allgatherv(comm, send, gathered, *tables)
            made.broadcast(comm, recv, rounds % size)
            made.barrier(comm)
            rounds += 1
            if rounds == 1 and comm.rank == victim:
                threading.Thread(target=_signal_self, args=(number, pause_s, struck)).start()
    except CollectiveFailed as error:
        at = time.monotonic()
        if number == signal.SIGSTOP and comm.rank != victim:
            _let_go_on(pids[victim], at)
        return error, at, float(struck.read_text())


def _signal_self(number, pause_s, struck):
    time.sleep(pause_s)
    struck.write_text(repr(time.monotonic()))
    os.kill(os.getpid(), number)


def _let_go_on(pid, at):
    """Once all survivors must have failed."""
    time.sleep(max(0.0, at + 1.0 - time.monotonic()))
    os.kill(pid, signal.SIGCONT)


def all_others_name_the_victim(ran):
    victim, number, _ = ran.cell.arguments
    if any(not outcome.ok and outcome.rank != victim for outcome in ran.outcomes):
        raise RanksFailed(ran.outcomes)
    if number == signal.SIGKILL:
        assert ran.outcomes[victim].exit_code == -number
    for rank in set(range(ran.size)) - {victim}:
        error, at, struck_at = ran.outcomes[rank].value
        assert isinstance(error, CollectiveFailed)
        assert error.ranks == (victim,), str(error)
        assert at - struck_at < SLACK_S


def case(name, number, needs, where, **fields):
    over = {"victim": range(3), "number": [number], "time": [0, *(Slow(n) for n in range(1, 10))]}
    return Case(
        name,
        strike,
        over,
        where=where,
        sizes=(3,),
        needs=needs,
        fresh=True,
        folder=True,
        check=NEVER,
        expect=all_others_name_the_victim,
        **fields,
    )


CASES = [
    case("killed", signal.SIGKILL, ("liveness",), "watchful"),
    case("stopped", signal.SIGSTOP, ("timeouts",), "watchful", limit_s=0.7),
]  # fmt: skip
