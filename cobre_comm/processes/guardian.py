"""A small process that outlives the launcher for a moment and leaves nothing behind.

It reads a pipe whose other end only the launcher holds. If the pipe ends without a goodbye, the
launcher was killed: the guardian then kills the process group of every rank, the ranks' own
children included. It also removes the name in shared memory by which ranks meet. Regions have none.
The kernel's death signal (see ``exec_shim``) does the same for the ranks themselves, on Linux only,
and sooner.

The guardian is also a witness. Slurm may send a signal to all processes of a step, or to the
launcher alone. Like a rank, the guardian is a child of the launcher in a session of its own: a
signal that waits there has reached the ranks as well, and the launcher need not forward it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

GOODBYE = "end"
# The signals that a launcher forwards; in the guardian they are blocked, so that none ends it.
WITNESSED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Guardian:
    """The launcher's side of the guardian.

    Parameters
    ----------
    shm_name : str
        Name of the job's segment.
    """

    def __init__(self, shm_name: str) -> None:
        import subprocess

        # Its own session: a signal to the launcher's process group must not end the guardian.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, WITNESSED)  # and it inherits that
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
        """Let the guardian kill a process and its group if the launcher is killed."""
        self._say(f"+{pid}")

    def forget(self, pid: int) -> None:
        """Let the guardian forget a process that has ended, before it is reaped."""
        self._say(f"-{pid}")

    def has_seen(self, number: int) -> bool:
        """Whether the guardian got a signal since this was last asked; False if that is unknown."""
        try:
            with open(f"/proc/{self._process.pid}/status") as file:  # noqa: PTH123  # pathlib is slow to import
                pending = next(line for line in file if line.startswith("ShdPnd:"))
        except (OSError, StopIteration):
            return False
        seen = bool(int(pending.split()[1], 16) >> (number - 1) & 1)
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
        with contextlib.suppress(OSError):  # somebody killed the guardian: the job goes on
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()


def kill_group(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal the process group that ``pid`` leads, or ``pid`` if it leads none yet."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def remove_name(shm_name: str) -> None:
    """Remove the job's name from shared memory; usually its ranks have done so."""
    import _posixshmem

    with contextlib.suppress(OSError):
        _posixshmem.shm_unlink(shm_name)


def main() -> None:
    """Be the guardian."""
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
        kill_group(pid)
    remove_name(sys.argv[1])


if __name__ == "__main__":
    main()
