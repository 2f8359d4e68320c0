"""The processes of one rank that mpiexec started; run as a module, not imported.

The first one connects to the parent and forks the rank, which then works as any other. It stays to
tell the parent how the rank ended, and to decide when mpiexec learns of that: mpiexec ends a whole
job for one rank, and some cannot be kept from it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from cobre_comm.processes.mpi.shim import RANK_VARIABLES
from cobre_comm.testing.ranks.worker import Worker, prepare_process


def announced_rank() -> int:
    """Return the rank that the launcher gave to this process."""
    for name in RANK_VARIABLES:
        if name in os.environ:
            return int(os.environ[name])
    raise RuntimeError(f"none of {', '.join(RANK_VARIABLES)} is set: was this begun by mpiexec?")


def redirect_output(path: Path) -> None:
    """Write what this process says to a file of its own, not through mpiexec."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def connect(folder: Path) -> Connection:
    """Connect to the parent."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(folder / "parent"))
    return Connection(link.detach())


def watch_over(child: int, connection: Connection, *, outlives: bool) -> NoReturn:
    """Wait for the rank, tell the parent of its end, and end in the same way."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(OSError):  # the parent may have gone first
        connection.send_bytes(pickle.dumps(("exit", code, "")))
        while outlives:  # until the parent hangs up; what it has sent is of no use any more
            connection.recv_bytes()
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


def finalize() -> None:
    """End MPI if a body has begun it; the parent ends this process if others never do."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()


def leave() -> NoReturn:
    """End without Python's own end, which takes long, but with that of the C library.

    MPICH tells its starter in an exit handler that this rank has finalized. The starter ends all
    ranks when one goes without that, and those that are still in ``MPI_Finalize`` then leave
    MPICH's file in shared memory.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(0)
    raise AssertionError("exit returned")


def serve(connection: Connection, rank: int) -> None:
    """Say who this is, take the variables of this rank, and serve until the parent hangs up."""
    prepare_process()
    connection.send_bytes(pickle.dumps((rank, os.getpid())))
    try:
        os.environ.update(pickle.loads(connection.recv_bytes()))
        Worker(connection).serve()
    except EOFError:  # nothing for this rank to do
        pass
    except SystemExit as error:
        # Said now, because the end of MPI may wait for the other ranks.
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        connection.send_bytes(pickle.dumps(("exit", code, "")))
        raise
    finalize()
    leave()


def main(folder: Path, *, outlives: bool) -> None:
    """Fork the rank, and watch over it."""
    prepare_process()
    rank = announced_rank()
    redirect_output(folder / f"rank-{rank}.txt")
    connection = connect(folder)
    child = os.fork()
    if child:
        watch_over(child, connection, outlives=outlives)
    serve(connection, rank)


if __name__ == "__main__":
    main(Path(sys.argv[1]), outlives=sys.argv[2] == "outlives")
