"""Which rank failed first, and how to say so.

A rank that dies takes the others with it: they raise ``CollectiveFailed`` naming it, and may well
end before it does. So an end that only tells of another rank's end is secondary, and the first
failure is the earliest of the others.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from cobre_comm.errors import signal_name

LAST_WORDS_S = 0.3  # for the others to notice by themselves, and to say so
TERMINATE_S = 0.7  # from SIGTERM to SIGKILL
TAIL_LINES = 40
STARTER = -1  # stands for mpiexec among the ranks

# What ranks say when another one was lost: failure.py, backends/shm/rendezvous.py,
# backends/tcp/frames.py.
_LOST_PEER = re.compile(
    r"while others waited for it"
    r"|broke in an earlier collective"
    r"|ended before all ranks had attached"
    r"|attached and then ended"
)
# What MPICH and those made from it print on the rank that calls MPI_Abort, which then is killed.
_ABORTED = re.compile(rb"^Abort\((\d+)\) on node \d+ \(rank \d+ in comm ", re.MULTILINE)


@dataclass(frozen=True)
class End:
    """How a rank ended.

    Parameters
    ----------
    rank : int
        Which, or ``STARTER``.
    code : int
        Its exit code; negative for a signal.
    at : float
        When that was seen, by a monotonic clock.
    secondary : bool
        Whether it only tells of another rank's end.
    """

    rank: int
    code: int
    at: float
    secondary: bool = False


def tells_of_lost_peer(text: str) -> bool:
    """Whether the last words of a rank are about the loss of another one."""
    return bool(_LOST_PEER.search(text))


def abort_code(tail: bytes) -> int | None:
    """Return the exit code that a rank has asked MPI_Abort for, or None if it has not."""
    found = _ABORTED.search(tail)
    return (int(found[1]) & 0xFF or 1) if found else None


def first_failure(ends: Iterable[End]) -> End | None:
    """Return the end that caused the others, or None if no rank failed."""
    failures = [end for end in ends if end.code != 0]
    # Of those seen at the same moment, a signal comes first: it leaves no time for anything else.
    return min(failures, key=lambda end: (end.secondary, end.at, end.code >= 0), default=None)


def exit_status(code: int) -> int:
    """Return the shell's exit status for an exit code that is negative for a signal."""
    return 128 - code if code < 0 else code


def name_of(rank: int) -> str:
    """Return how to call a rank, or what stands among them."""
    return "mpiexec" if rank == STARTER else f"rank {rank}"


def describe(end: End) -> str:
    """Say how a rank ended, in one line."""
    if end.code >= 0:
        return f"{name_of(end.rank)} exited with code {end.code}"
    text = f"{name_of(end.rank)} was ended by {signal_name(-end.code)}"
    if end.code == -signal.SIGKILL:
        text += "; signal 9 is also what the kernel's out-of-memory killer sends"
    return text


def last_lines(tail: bytes) -> list[str]:
    """Return the end of what a rank wrote to stderr, from its traceback on where there is one."""
    text = re.sub(r"[^\n]*\r(?!\n)", "", tail.decode(errors="replace"))
    lines = text.rstrip().splitlines()[-TAIL_LINES:]
    starts = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    return lines[starts[0] :] if starts else lines
