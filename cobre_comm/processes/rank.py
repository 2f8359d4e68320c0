"""One rank of ``cobre-comm run``: a process in a session of its own, and its two pipes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from cobre_comm.processes import endings
from cobre_comm.processes.guardian import kill_group
from cobre_comm.processes.interpreter import tied_command
from cobre_comm.run.lines import Stream


class Rank(Protocol):
    """A rank as the launcher's watch sees it.

    Attributes
    ----------
    rank : int
        Which.
    pid : int
        Its process; 0 before it has begun.
    end : endings.End or None
        How it ended; None while it runs.
    streams : tuple of Stream, or None
        What takes its stdout and stderr; None if it writes where the launcher does.
    """

    rank: int
    pid: int
    end: endings.End | None
    streams: tuple[Stream, Stream] | None

    def look(self) -> bool:
        """Whether it has just ended. It stays a zombie, so that its number stays its own."""

    def signal(self, number: int, *, group: bool) -> None:
        """Send a signal, to its whole process group if asked; to a zombie it does nothing."""

    def reap(self) -> None:
        """Let go of an ended process."""


class RankProcess:
    """A rank that this process starts.

    Its own session keeps the terminal's Ctrl-C away from it, so that the launcher decides what it
    gets; and everything it starts is in its process group.

    Parameters
    ----------
    rank : int
        Which.
    command : sequence of str
        The interpreter and its arguments.
    environment : mapping
        Its whole environment.
    core : int or None
        The core it is bound to.
    streams : tuple of Stream, or None
        For its stdout and stderr; None lets it write where the launcher does.
    """

    def __init__(
        self,
        rank: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        core: int | None,
        streams: tuple[Stream, Stream] | None,
    ) -> None:
        self.rank = rank
        self.end: endings.End | None = None
        self.streams = streams
        piped = None if streams is None else subprocess.PIPE
        self.process = subprocess.Popen(
            tied_command(command, core),
            bufsize=0,
            env=environment,
            stdin=None if rank == 0 else subprocess.DEVNULL,
            stdout=piped,
            stderr=piped,
            start_new_session=True,
        )
        self.pid = self.process.pid

    def pipes(self) -> list[tuple[int, Stream]]:
        """Return the descriptors to read, each with what takes its bytes."""
        if self.streams is None:
            return []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, error = self.streams
        return [(self.process.stdout.fileno(), out), (self.process.stderr.fileno(), error)]

    def look(self) -> bool:
        """See :meth:`Rank.look`."""
        if self.end is not None:
            return False
        if hasattr(os, "waitid"):
            code = code_without_reaping(self.pid)
        else:  # macOS before Python 3.13
            code = self.process.poll()
        if code is not None:
            self.end = endings.End(self.rank, code, time.monotonic())
        return code is not None

    def signal(self, number: int, *, group: bool) -> None:
        """See :meth:`Rank.signal`."""
        if group:
            kill_group(self.pid, number)
        elif self.end is None:
            os.kill(self.pid, number)

    def reap(self) -> None:
        """See :meth:`Rank.reap`."""
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def code_without_reaping(pid: int) -> int | None:
    """Return the exit code of a child, negative for a signal, or None while it runs."""
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if status is None:
        return None
    return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
