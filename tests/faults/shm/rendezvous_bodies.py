"""Ranks that try to meet while something is wrong; each makes its communicator itself."""

import fcntl
import os
import pathlib
import signal
import struct
import time

import numpy as np
from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.shm import control

from cobre_comm import CollectiveFailed, create_communicator
from cobre_comm.backends.shm import ownership, rendezvous
from cobre_comm.backends.shm.ownership import is_locked
from cobre_comm.testing.cases.raised import raises

NEVER_S = 300.0  # a limit that no test waits for
PATIENCE_S = 20.0  # for a peer on a busy machine


def _file():
    return pathlib.Path("/dev/shm") / os.environ["COBRE_SHM_NAME"].lstrip("/")


def _rank():
    return int(os.environ["COBRE_SHM_RANK"])


def _wait_for(path):
    until = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.01)


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


def meet(comm, limit_s=5.0):
    return attempt(limit_s)


def _header(path, *, version=control.LAYOUT_VERSION, size=1, length=2**16, magic=control.MAGIC):
    with path.open("wb") as file:
        file.write(struct.pack("<qqqqq", magic, version, size, 4096, os.getpid()))
        file.truncate(length)
    path.chmod(0o600)


def stale(comm, kinds):
    """Replace what dead jobs left behind, one after the other; return each attempt's result."""
    results = []
    for kind in kinds:
        if _rank() == 0 and kind == "empty":
            _file().touch(0o600)
        elif _rank() == 0:
            _header(_file(), magic=control.UNFINISHED if kind == "unfinished" else control.MAGIC)
        else:
            time.sleep(0.1)  # the others may well meet the stale one first
        results.append(attempt(PATIENCE_S))
    return results


def live(comm):
    """Another job holds the name, and the lock of its owner."""
    path = _file()
    _header(path)
    locked, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with path.open("r+b") as held:
            fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
            os.write(tell, b"x")
            time.sleep(PATIENCE_S)
        os._exit(0)
    try:
        os.read(locked, 1)
        return attempt(), path.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        path.unlink(missing_ok=True)


def foreign(comm, contents):
    """A file of another program is left as it is; return (error, is as it was) for each."""
    path, results = _file(), []
    for content in contents:
        path.write_bytes(content)
        path.chmod(0o600)
        error = attempt()
        results.append((error, path.exists() and path.read_bytes() == content))
        path.unlink(missing_ok=True)
    return results


def open_to_others(comm):
    path = _file()
    _header(path)
    path.chmod(0o666)
    try:
        return attempt(), path.exists()
    finally:
        path.unlink(missing_ok=True)


def follower_meets(comm, folder, header, mode=0o600):
    """Process 0 holds a segment with some header, as a rank 0 would, until rank 1 has tried."""
    ready, tried = pathlib.Path(folder, "ready"), pathlib.Path(folder, "tried")
    if _rank() == 1:
        _wait_for(ready)
        error = attempt()
        tried.touch()
        return error
    path, header = _file(), {"size": 2, **header}
    _header(path, length=control.buffers_offset(header["size"]) + 2**16, **header)
    path.chmod(mode)
    with path.open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
        ready.touch()
        _wait_for(tried)
    path.unlink(missing_ok=True)
    return None


def duplicate(comm):
    """Processes 1 and 2 are both told that they are rank 1; rank 2 never comes."""
    if os.environ["PROCESS"] == "2":
        time.sleep(0.7)
    # The leader gives up first, as in one_rank_is_missing.
    return attempt(3.0 if os.environ["PROCESS"] == "0" else 9.0)


def one_rank_is_missing(comm, absent, limit_s):
    # The leader gives up first; a follower that gave up before would be a rank that has ended.
    return "absent" if _rank() == absent else attempt(limit_s * (1 + 3 * _rank()))


def dies_when_attached(comm, victim, witness, absent):
    """The victim is killed when it and the witness have attached; a third rank never comes."""
    if _rank() == absent:
        return None
    if _rank() == victim:

        def die(config, segment, *rest):
            while not is_locked(segment.fd, witness):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

        rendezvous._await_followers = rendezvous._await_ready = die
    return attempt(NEVER_S)


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
        comm._agree_on(SPLIT, 0)
        os.kill(os.getpid(), signal.SIGKILL)
    return raises(CollectiveFailed, comm.split_local).ranks


def waits_while_another_removes(comm, folder):
    """Two ranks 0 find the same stale segment; the first stops after it has judged it."""
    judged, tried = pathlib.Path(folder, "judged"), pathlib.Path(folder, "tried")
    if os.environ["PROCESS"] == "0":
        _header(_file())
        look = ownership._is_ours

        def look_and_wait(fd):
            judged.touch()
            _wait_for(tried)
            return look(fd)

        ownership._is_ours = look_and_wait
        return attempt(1.0)
    _wait_for(judged)
    error = attempt(1.0)
    tried.touch()
    return error


def neighbour_is_left_alone(comm):
    """A job of another name is meeting while this one makes regions and communicators."""
    others = [_file().with_name(f"{_file().name}.{number}") for number in range(3)]
    for path in others:
        path.write_bytes(b"another job")
    try:
        with create_communicator() as made:
            made.create_shared_region(3).close()
            made.split_local().close()
        return [path.exists() and path.read_bytes() == b"another job" for path in others]
    finally:
        for path in others:
            path.unlink(missing_ok=True)
