"""Odd processes, which lack descriptors or addresses, or hold a pipe open; a job with one."""

import contextlib
import os
import pathlib
import resource
import secrets
import signal
from functools import partial

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.waiting import await_all, wait_until


@contextlib.contextmanager
def limited(what, most):
    """Limit this process to ``most`` of a resource of the module ``resource``."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


@contextlib.contextmanager
def no_descriptor_left():
    """Take all descriptors that this process may have."""
    most = max(int(text.partition(" ")[0]) for text in descriptors()) + 2
    with limited(resource.RLIMIT_NOFILE, most), contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            while True:
                held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield


def bytes_of_addresses(more):
    """Return the bytes of address space that this process uses, plus ``more``."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGESIZE") + int(more)


def descriptors():
    """Return the descriptors that this process has open, by number and name."""
    found = set()
    for path in pathlib.Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # this loop itself has had that descriptor
            found.add(f"{path.name} {path.readlink()}")
    return found


@contextlib.contextmanager
def open_pipe():
    """Hold open a pipe in /dev/shm that has no writer; give its descriptor."""
    path = pathlib.Path(f"/dev/shm/solver-{secrets.token_hex(8)}")
    os.mkfifo(path)
    try:
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield pipe
        finally:
            os.close(pipe)
    finally:
        path.unlink()


def wait_for_one(comm, how, at_fault, odd, oddity, folder):
    """One rank dies, is late or errs, and one is odd; return the error of each other rank."""
    done = pathlib.Path(folder, "done")
    comm.barrier()
    # Without this, a rank could return from the barrier and die while another rank is still in it.
    await_all(pathlib.Path(folder), comm.rank, comm.size)
    with oddity() if comm.rank == odd else contextlib.nullcontext():
        if comm.rank == at_fault and how == "killed":
            signal.raise_signal(signal.SIGKILL)
        if comm.rank == at_fault and how == "late":
            wait_until(done.exists)
            return None
        call = partial(comm.sum, 1) if comm.rank == at_fault else comm.barrier
        error = raises(CollectiveFailed, call)
    done.touch()
    return error.ranks, str(error), error.__notes__
