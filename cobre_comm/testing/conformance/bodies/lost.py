"""What ranks do while one of them goes away or comes late."""

import os
import signal
import sys
import threading
import time

import numpy as np
from numba import njit

from cobre_comm import InvalidCommunicator, ReduceOp
from cobre_comm.testing.conformance.calls import calls

OPERATIONS = ["allgatherv", "allreduce", "broadcast", "barrier"]


def collective(comm, caller, operation, length=5, *, dtype="f8", op=ReduceOp.SUM, root=0):
    """Call one collective with arguments that are right by themselves."""
    made, size = calls(caller), comm.size
    if operation == "allgatherv":
        tables = np.full(size, length), length * np.arange(size)
        made.allgatherv(comm, np.ones(length, dtype), np.zeros(size * length, dtype), *tables)
    elif operation == "allreduce":
        made.allreduce(comm, np.ones(length, dtype), np.zeros(length, dtype), op)
    elif operation == "broadcast":
        made.broadcast(comm, np.ones(length, dtype), root)
    else:
        made.barrier(comm)


def prepare(comm, caller):
    """Compile, and meet: what follows is about waiting alone. Return the pids of all ranks."""
    for name in OPERATIONS:
        collective(comm, caller, name)
    pids = np.zeros(comm.size, dtype=np.int64)
    tables = np.ones(comm.size, np.int64), np.arange(comm.size)
    comm.allgatherv(np.array([os.getpid()]), pids, *tables)
    return [int(pid) for pid in pids]


def meet_failure(comm, caller, operation, **arguments):
    """Return (what was raised, when, the error of the next call, how long that took)."""
    try:
        collective(comm, caller, operation, **arguments)
    except BaseException as error:
        caught, at = error, time.monotonic()
    else:
        return None, time.monotonic(), None, 0.0
    later, began = [], time.monotonic()
    for name in OPERATIONS:
        try:
            collective(comm, caller, name)
        except InvalidCommunicator as error:
            later.append(str(error))
    return caught, at, later, time.monotonic() - began


def wait_for_the_lost(comm, caller, operation, victim, how, pause_s=0.3):
    """The victim goes in some way while the others wait."""
    pids = prepare(comm, caller)
    if comm.rank != victim:
        return meet_failure(comm, caller, operation, root=victim)
    time.sleep(pause_s)
    sys.stdout.flush()
    if how == "kill":
        os.kill(pids[victim], signal.SIGKILL)
    if how == "term":
        os.kill(pids[victim], signal.SIGTERM)
    if how == "exit":
        sys.exit(0)
    if how == "_exit":
        os._exit(0)
    if how == "close":
        comm.close()
    return time.monotonic()


def killed_in_a_collective(comm, caller, operation, victim):
    """The victim is killed while it waits itself; the last rank does it and never comes."""
    pids = prepare(comm, caller)
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(pids[victim], signal.SIGKILL)
        time.sleep(0.1)
    return meet_failure(comm, caller, operation)


def child_outlives_rank(comm, victim):
    """A child of the dead rank that holds its descriptors does not keep it alive."""
    comm.barrier()
    if comm.rank == victim:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return meet_failure(comm, "python", "barrier")


@njit(cache=True)
def _reduce_with_the_gil(comm, send, recv):
    comm.allreduce(send, recv)


def kill_and_tell(comm, caller):
    """Rank 0 has its peer killed by a thread while it waits for it itself."""
    pids = prepare(comm, "python" if "GIL" in caller else caller)
    arrays = np.ones(5), np.zeros(5)
    if "GIL" in caller:
        _reduce_with_the_gil(comm, *arrays)  # compiles
    if comm.rank == 1:
        time.sleep(60)
    killed_at = []

    def kill():
        time.sleep(0.5)
        killed_at.append(time.monotonic())
        os.kill(pids[1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        if caller == "njit that holds the GIL":
            _reduce_with_the_gil(comm, *arrays)
        else:
            collective(comm, caller, "allreduce")
    except Exception as error:
        caught, at = error, time.monotonic()
    thread.join()
    return killed_at[0], caught, at


def late(comm, caller, operation, absent, pause_s):
    """Some ranks come after the timeout."""
    prepare(comm, caller)
    began = time.monotonic()
    if comm.rank in absent:
        time.sleep(pause_s)
    caught, at, later, took = meet_failure(comm, caller, operation, root=min(absent))
    return caught, at - began, later, took


def no_limit(comm, pause_s):
    """With a timeout of 0 a late rank is awaited."""
    comm.barrier()
    if comm.rank == 0:
        time.sleep(pause_s)
    comm.barrier()


def stopped(comm, caller, victim):
    """SIGSTOP of a rank: it is alive and does not come."""
    pids = prepare(comm, caller)
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGSTOP)
        return None
    time.sleep(0.1)
    try:
        return meet_failure(comm, caller, "barrier")
    finally:
        time.sleep(0.2)
        os.kill(pids[victim], signal.SIGCONT)
