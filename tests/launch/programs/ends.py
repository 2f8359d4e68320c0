"""Rank 1 ends by HOW; WAY says when, and what others do: ``run|launch WAY HOW [SIZE OPTIONS]``.

OPTIONS are arguments of ``launch``, as JSON. If ``launch`` raises an error, this program prints the
error, and exits as ``cobre-comm run`` does.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import time

from cobre_comm import CollectiveFailed, WorkerError, create_communicator, launch
from cobre_comm.processes.endings import exit_status

LONG_S = 60
RANK_VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK", "PMI_RANK", "PMIX_RANK")


def fail(comm, way):
    """Let this rank fail, for a cause of its own."""
    if way == "raise":
        raise ValueError("no such case\nline 2")
    if way == "sys.exit":
        sys.exit(3)
    if way == "os._exit":
        os._exit(5)
    if way == "abort":
        comm.abort(7)
    os.kill(os.getpid(), getattr(signal, way))


def meet(comm):
    """Meet the other ranks, until one of them is lost."""
    while True:
        comm.barrier()


def end(comm, way, how):
    comm.barrier()
    if way == "all":
        fail(comm, how)
    if way == "deaf":  # deaf to SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        comm.barrier()
    if way == "last" and comm.rank != 1:
        return
    if way == "last":
        time.sleep(1.0)  # until the others have ended
    if comm.rank == 1 and way == "late":
        time.sleep(LONG_S)
    # the others learn of the loss long before rank 1 ends
    if comm.rank == 1 and way.startswith("slow"):
        comm.close()
        time.sleep(1.0)
    if comm.rank == 1:
        fail(comm, how)
    if way == "deaf":
        time.sleep(LONG_S)
    try:
        meet(comm)
    except CollectiveFailed:
        if way.endswith("exit"):  # exit with a code that does not tell the cause
            sys.exit(4)
        if way != "caught":
            raise


class DiesEarly:
    """An argument that ends the process of rank 1 before it has met the others."""

    def __reduce__(self):
        return die_early, ()


def die_early():
    if "1" in map(os.environ.get, RANK_VARIABLES):
        os.kill(os.getpid(), signal.SIGKILL)


def main(launcher, way, how, size="", options="{}"):
    if launcher == "run":
        if way == "early":
            die_early()
        return end(create_communicator(), way, how)
    logging.basicConfig(format="cobre-comm: %(message)s")
    early = DiesEarly() if way == "early" else None
    try:
        with contextlib.suppress(KeyboardInterrupt):
            launch(
                end_with, int(size), backend="shm", args=(way, how, early), **json.loads(options)
            )
    except WorkerError as error:
        print(f"cobre-comm: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        sys.exit(exit_status(error.exit_code))


def end_with(comm, way, how, early):
    end(comm, way, how)


if __name__ == "__main__":
    main(*sys.argv[1:])
