"""Where the output of ranks goes: to the launcher's own output, to files, or to /dev/null."""

from __future__ import annotations

import os
import shutil
import termios
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cobre_comm.processes.endings import STARTER
from cobre_comm.processes.loop import LauncherLoop
from cobre_comm.processes.rank import Standard
from cobre_comm.reports import report_pipe
from cobre_comm.run.output.lines import Screen, Stream, rank_prefix
from cobre_comm.run.output.log_file import LogFile
from cobre_comm.run.output.outlet import Outlet
from cobre_comm.run.output.relay import Relay
from cobre_comm.system.streams import STDERR, STDOUT

_OUTPUT_FLAGS, _LOCAL_FLAGS = 1, 3  # indices into the list of tcgetattr
_FALLBACK_SIZE = (80, 24)


@dataclass(frozen=True)
class Shown:
    """What the user has chosen for the output of ranks."""

    # Whether each line begins with ``[rank]``; in a job of one rank it never does.
    prefix: bool = True
    quiet: frozenset[int] = frozenset()  # ranks of which no output is shown
    tty: bool = False  # whether each rank writes to a pseudo-terminal
    logs: Mapping[int, LogFile] = field(default_factory=dict)  # the files of ranks that have one


def parse_ranks(text: str | None, size: int) -> frozenset[int]:
    """Return the ranks of a list such as ``0,2-4,7-``; ``ValueError`` for any other text."""
    ranks: set[int] = set()
    for word in filter(None, (text or "").replace(" ", "").split(",")):
        first, dash, last = word.partition("-")
        try:
            begin, end = int(first), int(last or (size - 1 if dash else first))
        except ValueError:
            raise ValueError(f"--quiet-ranks takes ranks as in 1,3-5 or 1-, got {text!r}") from None
        if end >= size or (last and begin > end):
            raise ValueError(f"--quiet-ranks {text}: the ranks of this job are 0 to {size - 1}")
        ranks.update(range(begin, end + 1))
    return frozenset(ranks)


class Output:
    """The output of a job's ranks, and of ``mpiexec``, on the way to its destinations.

    A job of one rank writes directly to the launcher's stdout and stderr, unless the user has
    chosen a terminal, quiet ranks or files. ``size`` is the number of ranks of the whole job.
    """

    def __init__(self, loop: LauncherLoop, size: int, shown: Shown) -> None:
        self.outlets = Outlet(STDOUT), Outlet(STDERR)
        self._nowhere = Outlet(os.open(os.devnull, os.O_WRONLY))
        self.relay = Relay([*self.outlets, self._nowhere], loop)
        self._shown = shown
        self._has_prefix = shown.prefix and size > 1
        needs_terminal = shown.tty and not all(outlet.is_terminal for outlet in self.outlets)
        self._is_direct = size == 1 and not (needs_terminal or shown.quiet or shown.logs)
        self._screen = Screen()
        self._streams: dict[int, list[Stream]] = {}

    def of_rank(self, rank: int) -> Standard:
        """Return the stdin, stdout and stderr of a rank; rank 0 has the launcher's stdin."""
        if self._is_direct:
            return Standard()
        colour = not os.environ.get("NO_COLOR")
        prefixes = [
            rank_prefix(rank, outlet, colour=colour) if self._has_prefix else b""
            for outlet in self.outlets
        ]
        stdout, stderr = self._pipes(rank, prefixes)
        return Standard(0 if rank == 0 else _nothing(), stdout, stderr)

    def of_mpiexec(self) -> Standard:
        """Return the stdin, stdout and stderr of ``mpiexec``."""
        stdout, stderr = self._pipes(STARTER, [b"[mpiexec] "] * 2)
        return Standard(_nothing(), stdout, stderr)

    def _pipes(self, rank: int, prefixes: Iterable[bytes]) -> list[int]:
        """Make pipes, or terminals, that the relay reads; return the ends for the rank."""
        shown, writers = self._shown, []
        self._streams[rank] = []
        is_quiet, has_terminal = rank in shown.quiet, shown.tty and rank != STARTER
        screen = Screen() if is_quiet else self._screen
        for outlet, prefix in zip(self.outlets, prefixes, strict=True):
            taken = len(f"[{rank}] ") if prefix else 0
            reader, writer = _terminal(taken) if has_terminal else os.pipe()
            where = self._nowhere if is_quiet else outlet
            stream = Stream(where, prefix, screen, shown.logs.get(rank))
            self.relay.add(reader, stream)
            self._streams[rank].append(stream)
            writers.append(writer)
        return writers

    @property
    def variables(self) -> dict[str, str]:
        """Variables that make ranks leave tracebacks to the launcher, if it relays their output."""
        return {} if self._is_direct else {report_pipe.HOLDS_VARIABLE: "1"}

    def record(self, rank: int, text: str) -> None:
        """Add to a rank's log file a text that the rank has left to the launcher to print."""
        if rank in self._shown.logs:
            self._shown.logs[rank].write(text.encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close /dev/null, which this object has opened."""
        os.close(self._nowhere.fd)

    def mute_mpiexec(self) -> None:
        """Show no more output of ``mpiexec``."""
        for stream in self._streams[STARTER]:
            stream.is_muted = True

    def hold_interrupts(self) -> None:
        """Show no more tracebacks of Ctrl-C that ranks print."""
        for _, stderr in self._streams.values():
            stderr.sieve.is_on = True

    @property
    def interrupts(self) -> dict[int, bytes]:
        """By rank, the traceback of Ctrl-C that has not been shown."""
        streams = self._streams.items()
        return {rank: stderr.sieve.taken for rank, (_, stderr) in streams if stderr.sieve.taken}

    @property
    def tails(self) -> dict[int, bytes]:
        """By rank, the end of the rank's stderr."""
        return {rank: stderr.tail for rank, (_, stderr) in self._streams.items()}

    @property
    def problems(self) -> list[str]:
        """A sentence on each file or outlet that is incomplete."""
        everything: list[LogFile | Outlet] = [*self._shown.logs.values(), *self.outlets]
        return [each.problem for each in everything if each.problem]


def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def _terminal(taken: int) -> tuple[int, int]:
    """Return both ends of a pseudo-terminal, ``taken`` columns narrower than the launcher's."""
    reader, writer = os.openpty()
    flags = termios.tcgetattr(writer)
    flags[_OUTPUT_FLAGS] &= ~termios.OPOST  # so bytes arrive as they were written
    flags[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(writer, termios.TCSANOW, flags)
    columns, lines = shutil.get_terminal_size(_FALLBACK_SIZE)
    termios.tcsetwinsize(writer, (lines, max(1, columns - taken)))
    return reader, writer
