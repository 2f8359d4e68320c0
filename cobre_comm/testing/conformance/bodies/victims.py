"""What ranks do while one of them is killed or stopped somewhere inside a collective."""

import os
import pathlib
import signal
import threading
import time

import numpy as np

from cobre_comm import CollectiveFailed
from cobre_comm.testing.conformance.calls import calls

LENGTHS = {"small": 500, "large": 300_000}  # elements; over tcp through rank 0, around the ring


def strike(comm, caller, weight, victim, number, pause_s, folder):
    """All work; the victim sends itself a signal meanwhile. Return the error and when it came."""
    made, size, length = calls(caller), comm.size, LENGTHS[weight]
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
