"""Rank 1 starts a child in some WAY; the child makes communicators before or after the rank does.

WHEN may be "after an older": then rank 1 has a second child, which starts before rank 1 makes its
communicator, but makes its own communicators later than the rank. Each child prints what it got. In
the end the ranks meet.
"""

import contextlib
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

from cobre_comm import BackendKind, ShmConfig, create_communicator

VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK", "PMI_RANK", "PMIX_RANK")


def got(kind=None):
    try:
        with create_communicator(kind) as comm:
            return f"{comm.backend}, rank {comm.rank} of {comm.size}, {comm.sum(1)}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def say(line):
    """Write the line by one call, because the children of a rank write to one unbuffered pipe."""
    os.write(1, f"{line}\n".encode())


def tell():
    say(f"child: {got()}")
    named = os.environ["COBRE_COMM_BACKEND"]
    say(f"named: {got(named)}")
    say(f"local: {got(BackendKind.LOCAL)}")
    if named == "shm":
        say(f"configured: {got(ShmConfig.from_env())}")
        say(f"own: {got(ShmConfig(name=f'/own-{os.getpid()}', rank=0, size=1))}")


def start(way):
    if way == "program":
        subprocess.run([sys.executable, __file__, "alone"], check=True)
    elif way == "shell":
        assert os.system(f"{sys.executable} {__file__} alone") == 0
    elif way == "fork":
        if (pid := os.fork()) == 0:
            tell()
            os._exit(0)
        os.waitpid(pid, 0)
    else:
        process = multiprocessing.get_context(way).Process(target=tell)
        process.start()
        process.join()


def main(way, when):
    if way == "alone":
        tell()
        return
    rank = next(int(os.environ[name]) for name in VARIABLES if name in os.environ)
    if rank == 1 and when == "before":
        start(way)
    with contextlib.ExitStack() as stack:
        if rank == 1 and "older" in when:
            spawn = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(1, mp_context=spawn))
            pool.submit(int).result()  # when this returns, the process of the pool has started
        comm = stack.enter_context(create_communicator())
        comm.barrier()
        if rank == 1 and when != "before":
            start(way)
        if rank == 1 and "older" in when:
            say(f"older: {pool.submit(got).result()}")
        comm.barrier()
    say(f"again: {got()}")


def starts_children(comm):
    if comm.rank == 1:
        start("spawn")
        start("program")
    comm.barrier()
    return comm.sum(1)


if __name__ == "__main__":
    main(*sys.argv[1:], *[""] * (3 - len(sys.argv)))
