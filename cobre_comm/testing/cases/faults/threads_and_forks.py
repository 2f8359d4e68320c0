"""Two threads on one communicator, and processes forked from a rank."""

import atexit
import os
import pathlib
import signal
import threading
import time

import numpy as np

from cobre_comm import InvalidCommunicator, ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import NEVER, Case
from cobre_comm.testing.cases.faults.calling import FORKS, OPERATIONS, collective, prepare


def two_threads(comm, caller):
    """A second thread of rank 0 enters while the first waits; nothing is corrupted."""
    errors = []
    send, recv = np.full(3, comm.rank + 1.0), np.zeros(3)
    comm.barrier()
    calls(caller, comm.rank).allreduce(comm, send, recv, ReduceOp.SUM)
    if comm.rank == 0:
        thread = threading.Thread(target=calls(caller, comm.rank).barrier, args=(comm,))
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
        calls(caller, comm.rank).barrier(comm)
    recv[:] = 0.0
    calls(caller, comm.rank).allreduce(comm, send, recv, ReduceOp.SUM)
    assert recv.tolist() == [comm.size * (comm.size + 1) / 2] * 3
    return errors


def threads_with_their_own(comm, caller, rounds):
    """One communicator for each thread: they do not disturb one another."""
    comms = [comm.split_local() for _ in range(3)]
    failures = []

    def work(own, seed):
        try:
            send, recv = np.full(50, own.rank + seed + 1.0), np.zeros(50)
            for _ in range(rounds):
                calls(caller, comm.rank).allreduce(own, send, recv, ReduceOp.SUM)
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


def forked(comm, caller, how, folder):
    """The child is no rank; what it does, and its end, disturb nobody."""
    prepare(comm, caller)
    region = comm.create_shared_region(4, np.float64)
    child = FORKS[how]()
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


def forked_in_handler(comm, caller, how, folder):
    """The handler of a signal forks while its rank waits, and returns in both processes."""
    pids, children = prepare(comm, caller), []
    signal.signal(signal.SIGUSR2, lambda *_: children.append(FORKS[how]()))
    made, reduced, told = calls(caller, comm.rank), np.zeros(4), pathlib.Path(folder) / "told"
    for step in range(400):
        if comm.rank == 0 and step == 100:
            time.sleep(0.2)  # rank 1 waits
            os.kill(pids[1], signal.SIGUSR2)
            time.sleep(0.5)  # its child would take part meanwhile
        is_rank = os.getpid() in pids
        contribution = np.full(4, step + comm.rank * (1.0 if is_rank else 1000.0))
        try:
            made.allreduce(comm, contribution, reduced, ReduceOp.SUM)
        except InvalidCommunicator as error:
            if os.getpid() in pids:
                raise
            comm.close()
            atexit._run_exitfuncs()
            told.write_text(str(error))
            os._exit(0)
        assert reduced.tolist() == [2.0 * step + 1.0] * 4, (step, is_rank)
    return [(os.waitpid(child, 0)[1], told.read_text()) for child in children]


def all_are_refused(ran):
    told = ran.values[0]
    assert len(told) == len(OPERATIONS) + 1
    assert all("thread" in text for text in told), told


def the_child_is_refused(ran):
    for status, told in ran.values:
        assert status == 0
        assert len(told) == len(OPERATIONS) + 3
        assert all("fork" in text for text in told), told


def its_child_is_refused(ran):
    assert ran.values[0] == []
    [(status, told)] = ran.values[1]
    assert status == 0
    assert "fork" in told


CASES = [
    Case(
        "second_thread_is_refused", two_threads, sizes=(2,), needs=("threads",),
        expect=all_are_refused, check=NEVER,
    ),
    Case(
        "forked_child", forked, {"how": [*FORKS]}, sizes=(1, 2),
        needs=("forks", "regions", "split"), fresh=True, folder=True,
        expect=the_child_is_refused, check=NEVER,
    ),
    Case(
        "handler_that_forks", forked_in_handler, {"how": [*FORKS]}, sizes=(2,),
        needs=("forks", "signals"), fresh=True, folder=True, expect=its_child_is_refused,
        check=NEVER,
    ),
]  # fmt: skip
