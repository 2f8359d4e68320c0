"""Ranks that try to meet where something is wrong; each makes its communicator itself."""

import fcntl
import os
import pathlib
import signal
import struct
import time

import numpy as np
from cobre_kernels import layout
from cobre_kernels.kind import SPLIT

from cobre_comm import InitializationFailed, create_communicator
from cobre_comm.backends.shm import rendezvous


def _file():
    return pathlib.Path("/dev/shm") / os.environ["COBRE_SHM_NAME"].lstrip("/")


def _rank():
    return int(os.environ["COBRE_SHM_RANK"])


def attempt(limit_s=5.0):
    """Return the error of creating a communicator, or a working communicator's sum."""
    rendezvous.START_TIMEOUT_S = limit_s
    os.environ.setdefault("COBRE_SHM_TIMEOUT_SECS", str(limit_s))
    try:
        comm = create_communicator()
    except Exception as error:
        return error
    send, recv = np.array([comm.rank + 1.0]), np.zeros(1)
    comm.allreduce(send, recv)
    comm.barrier()
    comm.create_shared_region(3).close()
    comm.close()
    return float(recv[0])


def _header(path, *, version=layout.LAYOUT_VERSION, size=1, length=2**16, magic=layout.MAGIC):
    with path.open("wb") as file:
        file.write(struct.pack("<qqqqq", magic, version, size, 4096, os.getpid()))
        file.truncate(length)
    path.chmod(0o600)


def stale(comm, kind):
    """A segment that a dead job left behind is replaced."""
    if _rank() == 0:
        if kind == "empty":
            _file().touch(0o600)
        elif kind == "of a region":
            _file().with_name(f"{_file().name}.0").write_bytes(b"left by a dead job")
        else:
            _header(_file(), magic=layout.UNFINISHED if kind == "unfinished" else layout.MAGIC)
    else:
        time.sleep(0.1)  # the others may well meet the stale one first
    return attempt()


def live(comm):
    """Another job holds the name: its owner's lock is seen."""
    path = _file()
    _header(path)
    child = os.fork()
    if child == 0:
        with path.open("r+b") as held:
            fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
            time.sleep(30)
        os._exit(0)
    try:
        time.sleep(0.3)
        error = attempt()
        return error, path.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        path.unlink(missing_ok=True)


def foreign(comm, content):
    """A file of somebody else is left as it is."""
    path = _file()
    path.write_bytes(content)
    path.chmod(0o600)
    try:
        return attempt(), path.exists() and path.read_bytes() == content
    finally:
        path.unlink(missing_ok=True)


def open_to_others(comm):
    path = _file()
    _header(path)
    path.chmod(0o666)
    try:
        return attempt(), path.exists()
    finally:
        path.unlink(missing_ok=True)


def _owner(comm_size, **header):
    """Hold a segment with some header for a while, as a rank 0 would."""
    path = _file()
    _header(path, size=comm_size, length=layout.buffers_offset(comm_size) + 2**16, **header)
    held = path.open("r+b")
    fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
    return held


def other_header(comm, header):
    """Rank 0 is of another version; rank 1 says so."""
    if _rank() == 0:
        header = dict(header)
        held = _owner(header.pop("size", 2), **header)
        time.sleep(2.0)
        held.close()
        _file().unlink(missing_ok=True)
        return None
    time.sleep(0.3)
    return attempt()


def follower_meets_open_segment(comm):
    if _rank() == 0:
        held = _owner(2)
        _file().chmod(0o644)
        time.sleep(2.0)
        held.close()
        _file().unlink(missing_ok=True)
        return None
    time.sleep(0.5)
    return attempt()


def meet(comm, limit_s=5.0):
    return attempt(limit_s)


def duplicate(comm):
    """Processes 1 and 2 both say that they are rank 1; rank 2 never comes."""
    if os.environ["PROCESS"] == "2":
        time.sleep(0.7)
    # The leader gives up first, see one_rank_is_missing.
    return attempt(3.0 if os.environ["PROCESS"] == "0" else 9.0)


def one_rank_is_missing(comm, absent, limit_s):
    # The leader gives up first; a follower that gave up before would be a rank that has ended.
    return "absent" if _rank() == absent else attempt(limit_s * (1 + 3 * _rank()))


def dies_at_the_start(comm, victim):
    """A rank is killed after it attached and before all have."""
    if _rank() == victim:

        def die(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)

        rendezvous._await_followers = rendezvous._await_ready = die
        return attempt()
    if _rank() == 2:
        time.sleep(1.0)
    return attempt(3.0)


def dies_while_others_wait(comm, victim, absent):
    """Return the error, and how long it took; the errors are kept, with all that they hold."""
    began = time.monotonic()
    if _rank() == absent:
        return None
    if _rank() == victim:
        time.sleep(0.7)
        return dies_at_the_start(comm, victim)
    return attempt(60.0), time.monotonic() - began


def segment_properties(comm):
    """While the ranks gather: mode 0600; afterwards no name."""
    seen = {}
    if _rank() == 0:
        original = rendezvous._await_followers

        def look(config, segment):
            status = _file().stat()
            seen.update(mode=status.st_mode & 0o777, uid=status.st_uid)
            seen["blocks"], seen["size"] = status.st_blocks * 512, status.st_size
            original(config, segment)

        rendezvous._await_followers = look
        os.umask(0)
    result = attempt()
    return result, seen, _file().exists()


def leader_dies_in_split(comm):
    """Rank 0 is gone before it has made the segment of the new communicator."""
    if comm.rank == 0:
        comm._synchronise(SPLIT, 0)
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        comm.split_local()
    except InitializationFailed as error:
        return str(error), time.monotonic() - began
    return None
