"""What ranks do while something goes wrong."""

import os
import pathlib
import signal
import sys
import time

import numpy as np

from cobre_comm import CollectiveFailed, InvalidCommunicator, ReduceOp
from tests.calls import calls

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


def _prepare(comm, caller):
    """Compile, and meet: what follows is about waiting alone. Return the pids of all ranks."""
    for name in OPERATIONS:
        collective(comm, caller, name)
    pids = np.zeros(comm.size, dtype=np.int64)
    tables = np.ones(comm.size, np.int64), np.arange(comm.size)
    comm.allgatherv(np.array([os.getpid()]), pids, *tables)
    return [int(pid) for pid in pids]


def _meet_failure(comm, caller, operation, **arguments):
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
    pids = _prepare(comm, caller)
    if comm.rank != victim:
        return _meet_failure(comm, caller, operation, root=victim)
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
    pids = _prepare(comm, caller)
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(pids[victim], signal.SIGKILL)
        time.sleep(0.1)
    return _meet_failure(comm, caller, operation)


def late(comm, caller, operation, absent, pause_s):
    """Some ranks come after the timeout."""
    _prepare(comm, caller)
    began = time.monotonic()
    if comm.rank in absent:
        time.sleep(pause_s)
    caught, at, later, took = _meet_failure(comm, caller, operation, root=min(absent))
    return caught, at - began, later, took


def no_limit(comm, pause_s):
    """With a timeout of 0 a late rank is awaited."""
    comm.barrier()
    if comm.rank == 0:
        time.sleep(pause_s)
    comm.barrier()


def stopped(comm, caller, victim):
    """SIGSTOP of a rank: it is alive and does not come."""
    pids = _prepare(comm, caller)
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGSTOP)
        return None
    time.sleep(0.1)
    try:
        return _meet_failure(comm, caller, "barrier")
    finally:
        time.sleep(0.2)
        os.kill(pids[victim], signal.SIGCONT)


def disagree(comm, caller, plans):
    """Each rank calls what its plan says: (operation, length, keyword arguments)."""
    _prepare(comm, caller)
    operation, length, keywords = plans[comm.rank % len(plans)]
    caught, _, later, took = _meet_failure(comm, caller, operation, length=length, **keywords)
    return caught, later, took


def disagree_on_tables(comm, caller, which):
    """Counts or displacements are right by themselves and not the same on all ranks."""
    comm.barrier()
    size = comm.size
    counts, displs = np.full(size, 2), 4 * np.arange(size)
    odd = comm.rank == size - 1
    if which == "displs" and odd:
        displs[0] += 1
    if which == "counts" and odd:
        counts[0] += 1
    if which == "swapped" and odd:
        displs[:2] = displs[1::-1].copy()
    recv = np.zeros(4 * size + 4)
    try:
        calls(caller).allgatherv(comm, np.ones(2), recv, counts, displs)
    except Exception as error:
        return error
    return None


def disagree_on_region(comm, which):
    comm.barrier()
    odd = comm.rank == comm.size - 1
    try:
        if which == "count":
            comm.create_shared_region(4 if odd else 5)
        elif which == "dtype":
            comm.create_shared_region(4, np.int64 if odd else np.float64)
        elif which == "split" and odd:
            comm.split_local()
        elif which == "fence":
            regions = [comm.create_shared_region(2) for _ in range(2)]
            regions[1 if odd else 0].fence()
        else:
            comm.create_shared_region(4)
    except Exception as error:
        return error
    return None


class Alarmed(BaseException):
    """What a signal handler of the user raises."""


def interrupted(comm, caller, operation, number, pause_s=0.4):
    """The last rank signals rank 0, which waits; then it learns of a lost peer itself."""
    pids = _prepare(comm, caller)
    if number == signal.SIGUSR2:

        def handler(signum, frame):
            raise Alarmed("from the handler")

        signal.signal(number, handler)
    last = comm.size - 1
    if comm.rank == last:
        time.sleep(pause_s)
        sent = time.monotonic()
        os.kill(pids[0], number)
        time.sleep(1.2)
        return (sent, *_meet_failure(comm, caller, operation, root=last))
    return (0.0, *_meet_failure(comm, caller, operation, root=last))


def handler_that_returns(comm, caller):
    """A handler that raises nothing runs while the rank waits, and the wait goes on."""
    pids = _prepare(comm, caller)
    seen = []
    signal.signal(signal.SIGUSR2, lambda signum, frame: seen.append(time.monotonic()))
    if comm.rank == comm.size - 1:
        for _ in range(3):
            time.sleep(0.15)
            os.kill(pids[0], signal.SIGUSR2)
        time.sleep(0.3)
    entered = time.monotonic()
    calls(caller).barrier(comm)
    return seen, entered


def two_threads(comm, caller):
    """A second thread of rank 0 enters while the first waits; nothing is corrupted."""
    import threading

    errors = []
    send, recv = np.full(3, comm.rank + 1.0), np.zeros(3)
    comm.barrier()
    calls(caller).allreduce(comm, send, recv, ReduceOp.SUM)
    if comm.rank == 0:
        thread = threading.Thread(target=calls(caller).barrier, args=(comm,))
        thread.start()
        time.sleep(0.3)
        for name in OPERATIONS:
            try:
                collective(comm, caller, name)
            except InvalidCommunicator as error:
                errors.append(str(error))
        try:
            comm.close()
        except InvalidCommunicator as error:
            errors.append(str(error))
        thread.join()
    else:
        time.sleep(0.8)
        calls(caller).barrier(comm)
    recv[:] = 0.0
    calls(caller).allreduce(comm, send, recv, ReduceOp.SUM)
    assert recv.tolist() == [comm.size * (comm.size + 1) / 2] * 3
    return errors


def threads_with_their_own(comm, caller, rounds):
    """One communicator for each thread: they do not disturb one another."""
    import threading

    comms = [comm.split_local() for _ in range(3)]
    failures = []

    def work(own, seed):
        try:
            send, recv = np.full(50, own.rank + seed + 1.0), np.zeros(50)
            for _ in range(rounds):
                calls(caller).allreduce(own, send, recv, ReduceOp.SUM)
                assert recv[7] == sum(r + seed + 1.0 for r in range(own.size))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(own, i)) for i, own in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for own in comms:
        own.close()


def forked(comm, caller, folder):
    """The child is no rank; what it does, and its end, disturb nobody."""
    _prepare(comm, caller)
    region = comm.create_shared_region(4, np.float64)
    child = os.fork()
    if child == 0:
        told = []
        try:
            for name in OPERATIONS:
                try:
                    collective(comm, caller, name)
                except InvalidCommunicator as error:
                    told.append(str(error))
            for call in (region.fence, comm.split_local, lambda: comm.create_shared_region(3)):
                try:
                    call()
                except InvalidCommunicator as error:
                    told.append(str(error))
            comm.close()
            del comm
        finally:
            (pathlib.Path(folder) / str(os.getppid())).write_text("\n".join(told))
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for _ in range(50):
        collective(comm, caller, "allreduce")
    if comm.rank == 1 % comm.size:
        time.sleep(0.3)  # the others look for dead peers meanwhile
    collective(comm, caller, "barrier")
    told = (pathlib.Path(folder) / str(os.getpid())).read_text().splitlines()
    return status, told


def child_outlives_rank(comm, victim):
    """A child of the dead rank that holds its descriptors does not keep it alive."""
    comm.barrier()
    if comm.rank == victim:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return _meet_failure(comm, "python", "barrier")


def kill_and_tell(comm, caller):
    """Rank 0 has its peer killed by a thread while it waits for it itself."""
    import threading

    pids = _prepare(comm, caller)
    if comm.rank == 1:
        time.sleep(60)
    killed_at = []

    def kill():
        time.sleep(0.5)
        killed_at.append(time.monotonic())
        os.kill(pids[1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    caught, at, *_ = _meet_failure(comm, caller, "allreduce")
    thread.join()
    return killed_at[0], caught, at


def one_bad_argument(comm, caller):
    """Rank 0's call is refused before communication; its next call meets the others' first."""
    comm.barrier()
    recv = np.zeros(3 if comm.rank == 0 else 4)
    try:
        calls(caller).allreduce(comm, np.zeros(4), recv, ReduceOp.SUM)
    except Exception as error:
        first = error
    else:
        first = None
    if comm.rank == 0:
        try:
            comm.barrier()
        except CollectiveFailed:
            return first
        raise AssertionError("rank 0 should learn of the disagreement, too")
    return first


def interrupted_then_next(comm, caller):
    """Rank 0 is interrupted while it waits; the others go on to the next collective."""
    pids = _prepare(comm, caller)
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(pids[0], signal.SIGINT)
        time.sleep(0.5)
    caught = None
    try:
        for _ in range(2):
            calls(caller).barrier(comm)
    except BaseException as error:
        caught = error
    return caught
