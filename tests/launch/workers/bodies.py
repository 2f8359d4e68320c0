"""Bodies of workers in tests. Workers import this file, so this file does not import pytest."""

import contextvars
import faulthandler
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cobre_comm import CollectiveFailed, launch, report_progress
from tests.launch.programs.ends import fail

REPORTS = 1000  # made by the function of a rank; its signal handler makes further reports


def add(comm, factor):
    total = np.array([comm.rank + 1.0])
    comm.allreduce(total, total)
    return float(total[0]) * factor


def surroundings(comm):
    return {
        name: value for name, value in os.environ.items() if name.startswith(("COBRE", "NUMBA"))
    }


def progress(comm, count):
    for number in range(count):
        report_progress((comm.rank, number))
    comm.barrier()
    return "done"


def progress_amid_progress(comm):
    """Report, and let a signal handler report meanwhile; return how often the handler did."""
    calls = itertools.count()

    def handler(number, frame):
        report_progress({"handler": next(calls)})

    report_progress({})  # this first report imports all that reports need
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    faulthandler.dump_traceback_later(60, exit=True)  # ends a rank that would wait for itself
    try:
        for number in range(REPORTS):
            report_progress({"program": number, "text": "x" * 5000})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)
    return next(calls)


def sleeper(comm):
    report_progress(os.getpid())
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stderr=subprocess.DEVNULL
    )
    report_progress(child.pid)
    try:
        time.sleep(60)
    finally:
        report_progress("finally")


def end(comm, way, actor):
    comm.barrier()
    if comm.rank == actor:
        if way == "fork" and os.fork() == 0:
            time.sleep(60)  # the fork keeps open what the worker had open
        fail(comm, "SIGKILL" if way == "fork" else way)
    comm.barrier()


def mistaken(comm, ranks):
    """Meet in a part; then some ranks raise the same error, and the others report their own."""
    part = comm.split(0)
    part.barrier()
    if comm.rank in ranks:
        fail(comm, "raise")
    try:
        part.barrier()
    except CollectiveFailed as error:
        report_progress(str(error))
        raise


class Undoes(Exception):
    """An exception that can be pickled, but is unpickled as the result of ``what()``."""

    def __init__(self, what):
        super().__init__("made here")
        self.what = what

    def __reduce__(self):
        return self.what, ()


def exits():
    sys.exit(99)


def interrupts():
    raise KeyboardInterrupt


def raises(comm, kind, *args):
    comm.barrier()
    if comm.rank == 1:
        raise kind(*args)
    comm.barrier()


def returns(comm, kind, *args):
    return kind(*args) if comm.rank == 1 else None


def raises_long(comm, count):
    raises(comm, ValueError, "x" * count)


def large(comm, count):
    return np.arange(count if comm.rank == 1 else 0, dtype=np.uint8)


def unpicklable(comm):
    return threading.Lock()


def clean_exit(comm):
    sys.exit(0)


def leaves_at_once(comm):
    os._exit(0)


def exits_with_0():
    sys.exit(0)


def one_leaves(comm):
    if comm.rank == 1:
        os._exit(0)
    try:
        comm.barrier()
    except CollectiveFailed:
        return comm.shrink().size


def nested(comm):
    launch(add, 2, args=(1,))


def puts_its_rank(comm, queue):
    queue.put(comm.rank)
    queue.close()
    queue.join_thread()


def progress_of_threads(comm):
    def reports(thread):
        for n in range(50):
            report_progress((thread, n, bytes(100_000)))

    with ThreadPoolExecutor(4) as threads:
        each = [threads.submit(contextvars.copy_context().run, reports, n) for n in range(4)]
        return [future.result() for future in each]


def until_asked(comm):
    report_progress(os.getpid())
    report_progress(os.getpid())
    rounds = 0
    while not comm.stop_requested():
        comm.barrier()
        rounds += 1
    return rounds


def runs_on(comm, folder, way):
    (folder / str(comm.rank)).touch()
    while way == "in collectives":
        comm.barrier()
    time.sleep(600)


def fails_beside_sleepers(comm, actor):
    comm.barrier()
    if comm.rank == actor:
        fail(comm, "raise")
    time.sleep(600)


def lose_rank_1(comm, way, times):
    """Lose rank 1 in the first attempts; return the attempt's number, and how many ranks it has."""
    attempt = int(os.environ["COBRE_RESTART"])
    comm.barrier()
    if attempt < times and comm.rank == 1:
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(f"attempt {attempt}")
    comm.barrier()
    return attempt, comm.size


def lose(comm, way, victims):
    """Lose the victims; on each other rank return the ranks that it has lost."""
    comm.barrier()
    if comm.rank in victims:
        fail(comm, way)
    try:
        comm.barrier()
    except CollectiveFailed as error:
        return error.ranks
