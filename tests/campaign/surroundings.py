"""Private surroundings for each worker of a campaign, so that leftovers of a job are seen."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time

from cobre_comm.testing.ranks.litter import PATTERNS

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SHM, SIZE = pathlib.Path("/dev/shm"), "2g"
PATIENCE_S = 3.0  # for what has lost its rank or its launcher to end
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans():
    """Become the parent of each descendant whose own parent ends."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def make_private_memory(size=SIZE):
    """Mount a /dev/shm of this process's own; return "" or the reason why it cannot be mounted."""
    if _libc.unshare(CLONE_NEWNS) or _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return f"no private mount namespace: {os.strerror(ctypes.get_errno())}"
    return resize(size, "size")


def resize(size, how="remount,size"):
    """Give /dev/shm a size; return "" or the reason why it cannot be mounted."""
    if _libc.mount(b"tmpfs", bytes(SHM), b"tmpfs", 32 if "remount" in how else 0,
                   f"size={size}".encode()):  # fmt: skip
        return f"cannot mount /dev/shm: {os.strerror(ctypes.get_errno())}"
    return ""


def names():
    """Return the names in /dev/shm, without the files that an MPI leaves."""
    litter = {path for pattern in PATTERNS for path in SHM.glob(pattern)}
    return {path.name for path in SHM.iterdir() if path not in litter}


def children(parent=None):
    """Return the child processes of one, by default of this one: pid to command."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:
            continue
        if int(tail.split()[1]) == (parent or os.getpid()):
            pid, _, name = head.partition(" (")
            found[int(pid)] = name
    return found


def await_no_children(known, allowed, patience_s):
    """End known processes and wait until no child is left; return and end the rest."""
    for pid in known:
        _kill(pid)
    until = time.monotonic() + patience_s
    while left := _alive(allowed):
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    for pid in left:
        _kill(pid)
    _alive(allowed)
    return tuple(f"{pid} {name}" for pid, name in left.items())


def _alive(allowed):
    """Reap ended children; return the live ones, without the allowed ones."""
    alive = {}
    for pid, name in children().items():
        if pid in allowed:
            continue
        try:
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                alive[pid] = name
        except ChildProcessError:
            continue
    return alive


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def stretch():
    """Return the ratio of elapsed time to computing time of a busy process, here and now."""
    wall, own = time.monotonic(), time.process_time()
    while time.process_time() - own < 0.3:
        sum(range(1000))
    return (time.monotonic() - wall) / 0.3


def busy(count):
    """Start processes that compute without end."""
    code = "while True: pass"
    return [subprocess.Popen(["python3", "-c", code], preexec_fn=die_with_parent)
            for _ in range(count)]  # fmt: skip
