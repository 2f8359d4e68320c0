"""A small process that outlives a killed launcher for a moment and leaves nothing behind.

A launcher that lives cleans up itself, even if all its ranks are killed (``attempt.py``). The
guardian reads a pipe of which only the launcher holds the other end. If the pipe ends without a
goodbye, the launcher was killed. Then the guardian kills every rank; over MPI it also kills
``mpiexec`` and the parents of shims (``mpi/start.py``). It ends what is left in the process groups
of all these processes, which includes the children of ranks. It also removes the name in shared
memory by which ranks meet. Regions have no name that could be left.

On Linux the kernel kills most ranks sooner, by a death signal (``exec_shim.py``). The guardian is
for the children of ranks, for ranks that have no death signal, and for other systems.

The guardian is also a witness. Slurm may send a signal to all processes of a step, or to the
launcher alone. Like a rank, the guardian is a child of the launcher in a session of its own. So if
a signal is pending in the guardian, the ranks have got it too, and the launcher need not forward
it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable

GOODBYE = "end"
ASKED_S = 1.0  # from SIGTERM to SIGKILL, for the children of ranks
TIDY_S = 0.5  # after that SIGKILL, for processes that ignore SIGTERM to clean up after others
LOOK_S = 0.01


class Guardian:
    """The launcher's side of the guardian; ``shm_name`` is the name of the job's segment.

    ``witnessed`` are signals that the launcher forwards. They are blocked in the guardian, so none
    of them ends it.
    """

    def __init__(self, shm_name: str, witnessed: Iterable[int]) -> None:
        import subprocess

        # A session of its own: a signal to the launcher's process group must not end the guardian.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, witnessed)  # the guardian inherits this
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, shm_name],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def watch(self, pid: int) -> None:
        """Make the guardian kill a process and its group if the launcher is killed."""
        self._say(f"+{pid}")

    def forget(self, pid: int) -> None:
        """Make the guardian forget a process that has ended, before the process is reaped."""
        self._say(f"-{pid}")

    def has_seen(self, number: int) -> bool:
        """Whether the guardian got a signal since the last call; False if that cannot be known."""
        seen = has_signal(self._process.pid, "ShdPnd:", number)
        if seen:
            self._say(f"?{number}")
        return seen

    def end(self) -> None:
        """End the guardian, because the job has ended."""
        self._say(GOODBYE)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # if somebody has killed the guardian, the job continues
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()


def kill_group(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal the process group that ``pid`` leads; if it leads no group yet, signal ``pid``."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):  # on macOS, EPERM for a group of zombies
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_groups(leaders: Iterable[int], wait: Callable[[float], bool]) -> None:
    """End what is left in the process groups of ranks that have ended, or are about to end.

    Every process gets SIGTERM first. Python's resource tracker ignores SIGTERM: when all processes
    that use the tracker have ended, it removes the shared memory and the semaphores that they have
    left. So a process that ignores SIGTERM is killed last. A rank that has ended is a zombie, and
    does not count as a process that is left.

    ``wait`` waits until a given time at most, and returns whether to stop waiting.
    """
    left = _members(leaders)
    try:
        for number, seconds in ((signal.SIGTERM, ASKED_S), (signal.SIGKILL, TIDY_S)):
            for pid in [pid for pids in left.values() for pid in pids]:
                if number == signal.SIGTERM or not has_signal(pid, "SigIgn:", signal.SIGTERM):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            until = time.monotonic() + seconds
            while left and time.monotonic() < until:
                if wait(min(until, time.monotonic() + LOOK_S)):
                    return
                left = _members(left)
    finally:
        for leader in left:
            kill_group(leader)


def _members(leaders: Iterable[int]) -> dict[int, list[int]]:
    """Return the running processes in the groups of these leaders, by leader; no empty groups."""
    wanted, found = set(leaders), dict[int, list[int]]()
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110  # pathlib is slow to import
        return {leader: [leader] for leader in wanted if _is_group(leader)}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, _, group, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):  # the process has ended
            continue
        if int(group) in wanted and state not in (b"Z", b"X"):
            found.setdefault(int(group), []).append(int(name))
    return found


def _is_group(leader: int) -> bool:
    """Whether a process group has members; on macOS, members that are not zombies."""
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def has_signal(pid: int, where: str, number: int) -> bool:
    """Whether a signal is in the set ``where`` of ``/proc/PID/status`` (proc_pid_status(5))."""
    try:
        with open(f"/proc/{pid}/status") as file:  # noqa: PTH123  # pathlib is slow to import
            numbers = next(line for line in file if line.startswith(where)).split()[1]
    except (OSError, StopIteration):
        return False
    return bool(int(numbers, 16) >> (number - 1) & 1)


def remove_name(shm_name: str) -> None:
    """Remove the job's name from shared memory; its ranks have usually removed it before."""
    import _posixshmem

    with contextlib.suppress(OSError):
        _posixshmem.shm_unlink(shm_name)


def _sleep_until(until: float) -> bool:
    time.sleep(max(0.0, until - time.monotonic()))
    return False


def main() -> None:
    """Act as the guardian."""
    pids = set()
    for line in sys.stdin:
        order = line.strip()
        if order == GOODBYE:
            return
        kind, number = order[0], int(order[1:])
        if kind == "+":
            pids.add(number)
        elif kind == "-":
            pids.discard(number)
        else:
            signal.sigtimedwait([number], 0)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    end_groups(pids, _sleep_until)
    remove_name(sys.argv[1])


if __name__ == "__main__":
    main()
