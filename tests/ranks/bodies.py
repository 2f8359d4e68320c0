"""Bodies that end in every way a body can."""

import os
import signal
import sys
import time


def identity(comm, *args):
    return (comm.rank, comm.size, *args)


def fails_on(comm, rank):
    if comm.rank == rank:
        raise ZeroDivisionError(f"on rank {rank}")
    return "fine"


def raises_what_cannot_be_pickled(comm):
    class Local(Exception):
        pass

    raise Local("a class of this call")


def sleeps_on(comm, rank):
    if comm.rank == rank:
        time.sleep(60)
    return os.getpid()


def sleeps(comm):
    time.sleep(float(os.environ.get("PAUSE_S", "0")))
    return os.getpid()


def exits_with(comm, code):
    print("said before the end", flush=True)
    sys.exit(code)


def environment(comm, *names):
    return [os.environ.get(name) for name in names], comm is None


def pid(comm):
    return os.getpid()


def world(comm):
    from mpi4py import MPI

    library = MPI.Get_library_version()
    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, library, os.environ.get("MINE")


def ends_and_others_wait(comm, pause_s):
    """Rank 1 exits, rank 2 is killed, rank 0 computes."""
    if comm.rank == 1:
        exits_with(comm, 7)
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(pause_s)
