"""Functions that workers call."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

from cobre_comm import CollectiveFailed, launch, report_progress


class Stubborn(Exception):
    """Pickles, and cannot be made again."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Silent(Exception):
    """Says nothing, and does not pickle."""

    def __str__(self):
        return str(1 / 0)

    def __reduce__(self):
        raise TypeError


class Undoes(Exception):
    """Pickles; whoever makes it again gets something else."""

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


def raises_long(comm, count):
    raises(comm, ValueError, "x" * count)


def returns(comm, kind, *args):
    return kind(*args) if comm.rank == 1 else None


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


def end(comm, way, actor):
    comm.barrier()
    if comm.rank == actor:
        if way == "raise":
            raise KeyError("the first cause")
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "exit":
            sys.exit(7)
        if way == "vanish":
            os._exit(5)
        if way == "fork":
            if os.fork() == 0:
                time.sleep(60)  # holds all that this worker held
            os.kill(os.getpid(), signal.SIGKILL)
    if way == "alone":
        time.sleep(60)
    comm.barrier()


def puts_its_rank(comm, queue):
    queue.put(comm.rank)
    queue.close()
    queue.join_thread()


def large(comm, count):
    return np.arange(count if comm.rank == 1 else 0, dtype=np.uint8)


def unpicklable(comm):
    return threading.Lock()


def clean_exit(comm):
    sys.exit(0)


def nested(comm):
    launch(add, 2, args=(1,))


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


def until_asked(comm):
    report_progress(os.getpid())
    report_progress(os.getpid())
    rounds = 0
    while not comm.stop_requested():
        comm.barrier()
        rounds += 1
    return rounds


def mistaken(comm, ranks):
    """Some ranks raise the same; the others report what they are told, in a part of all ranks."""
    part = comm.split(0)
    part.barrier()
    if comm.rank in ranks:
        raise ValueError("no such case\nline 2")
    try:
        part.barrier()
    except CollectiveFailed as error:
        report_progress(str(error))
        raise
