"""Bodies that end in every way a body can."""

import os
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


def exits_with(comm, code):
    print("said before the end", flush=True)
    sys.exit(code)


def environment(comm, *names):
    return [os.environ.get(name) for name in names], comm is None


def pid(comm):
    return os.getpid()
