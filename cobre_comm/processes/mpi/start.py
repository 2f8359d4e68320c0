"""Start ranks by ``mpiexec``: it starts shims, and each shim gets its order from here.

``mpiexec`` gives each process the means to find its MPI peers. The launcher does all else as for
other backends: input and output, signals, the report pipe, the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from cobre_comm.processes.endings import STARTER, Ending
from cobre_comm.processes.interpreter import tied_command
from cobre_comm.processes.loop import NEVER, LauncherLoop
from cobre_comm.processes.mpi import leftovers, shim
from cobre_comm.processes.mpi.mpi_rank import MpiRank
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.rank import RankProcess, Standard

SEND_S = 10.0  # for a shim to take its order, which it waits for
LEAVE_S = 3.0  # for mpiexec to tidy up after its processes have ended
_LINE_BYTES = 64
_PR_SET_CHILD_SUBREAPER = 36


def check_system() -> None:
    """Raise ``ValueError`` where ranks cannot become children of the launcher."""
    if sys.platform != "linux":
        raise ValueError(
            "--backend mpi needs Linux; on this system run "
            "`COBRE_COMM_BACKEND=mpi mpiexec -n N python script.py`"
        )


class MpiStart:
    """One ``mpiexec`` and the connections of its shims, which ``loop`` serves.

    ``watch`` is called with the process id of ``mpiexec``, of each process that it starts and of
    each rank.
    """

    def __init__(
        self,
        ranks: Sequence[MpiRank],
        command: Sequence[str],
        loop: LauncherLoop,
        watch: Callable[[int], None],
    ) -> None:
        self._ranks = {rank.rank: rank for rank in ranks}
        self._command = list(command)
        self._loop = loop
        self._watch = watch
        self._links: dict[socket.socket, MpiRank | None] = {}
        # An abstract name, in no file system, leaves nothing behind; both ends check their peer.
        self._name = f"cobre-comm-{os.urandom(16).hex()}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{self._name}")
        self._listener.listen(len(ranks))
        self._listener.setblocking(False)
        loop.serve(self._listener.fileno(), self._accept)
        self._process: RankProcess | None = None
        self.ended_at = NEVER  # when mpiexec began to end the job, or ended, before leave
        self._segments: set[str] | None = None  # not looked for yet
        numbers = signal.valid_signals()
        self._ignored = [n for n in numbers if signal.getsignal(n) is signal.SIG_IGN]

    def start(self, mpiexec: Mpiexec, standard: Standard) -> None:
        """Start ``mpiexec`` with its stdin, stdout and stderr; its ranks come later."""
        _adopt_orphans(True)
        program = [sys.executable, "-I", "-S", shim.__file__, self._name, str(os.getpid())]
        command = mpiexec.start_command(len(self._ranks), program)
        self._process = RankProcess(STARTER, command, mpiexec.environment, standard, reports=False)
        self._watch(self._process.pid)

    @property
    def is_started(self) -> bool:
        """Whether there is an ``mpiexec``; its start may have failed."""
        return self._process is not None

    @property
    def process(self) -> RankProcess:
        """``mpiexec`` itself."""
        assert self._process is not None
        return self._process

    @property
    def has_begun(self) -> bool:
        """Whether every rank has begun."""
        return all(rank.pid for rank in self._ranks.values())

    def look(self) -> None:
        """Note an early end of ``mpiexec``, and the ranks that then never begin."""
        if self.process.ending is not None:
            return
        self.process.look()
        if self.process.ending is None:
            return
        self.ended_at = min(self.ended_at, self.process.ending.at)
        self._accept()
        for rank in self._ranks.values():
            if not rank.pid and rank.ending is None and rank not in self._links.values():
                rank.never_begins(self.process.ending.code or 1)

    @property
    def ending(self) -> Ending | None:
        """The ending of ``mpiexec``, if it has ended the job; its code is final once it exits."""
        if self.ended_at == NEVER:
            return None
        seen = self.process.ending
        code = seen.code if seen is not None else max(0, self.process.exit_code() or 0)
        # mpiexec may have ended the job because a rank ended: then that rank is the cause.
        return Ending(STARTER, code or 1, self.ended_at)

    def find_leftovers(self) -> None:
        """Note MPI's files in shared memory, because the job may end without MPI_Finalize."""
        if self._segments is None:
            found = [leftovers.segments_of(rank.pid) for rank in self._ranks.values()]
            self._segments = set().union(*found)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except BlockingIOError:
                return
            peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", peer)[1] != os.getuid():
                link.close()
                continue
            link.setblocking(False)
            self._links[link] = None
            self._loop.serve(link.fileno(), partial(self._hear, link))

    def _hear(self, link: socket.socket) -> None:
        """Take a line: first ``RANK PARENT`` of the shim, then ``PID`` of the rank."""
        # Lines are too short for a socket to split, and the second answers an order.
        try:
            words = link.recv(_LINE_BYTES).split()
        except BlockingIOError:
            return
        except OSError:
            words = []
        rank = self._links[link]
        if not words:
            if rank is not None:
                self.ended_at = min(self.ended_at, time.monotonic())
            self._hang_up(link)
        elif rank is None:
            rank = self._ranks.get(int(words[0]))
            if rank is None or rank.is_ordered or self.process.ending is not None:
                self._hang_up(link)
                return
            self._links[link] = rank
            self._watch(int(words[1]))
            self._order(link, rank)
        else:
            self._watch(int(words[0]))
            rank.began(int(words[0]))
            if self.has_begun:
                _adopt_orphans(False)

    def _order(self, link: socket.socket, rank: MpiRank) -> None:
        order = {
            "command": tied_command(self._command, rank.cpus),
            "environment": rank.environment,
            "ignored": self._ignored,
        }
        data = json.dumps(order).encode()
        link.settimeout(SEND_S)
        try:
            socket.send_fds(link, [shim.HEADER.pack(len(data))], rank.descriptors)
            link.sendall(data)
        except OSError:
            self._hang_up(link)
        else:
            link.setblocking(False)
            rank.sent()

    def _hang_up(self, link: socket.socket) -> None:
        """Close the connection of a shim, which then ends or has ended."""
        rank = self._links.pop(link)
        self._loop.unserve(link.fileno())
        link.close()
        if rank is not None and not rank.pid and rank.ending is None:
            rank.never_begins()

    def end_starting(self) -> None:
        """Kill ``mpiexec`` if some ranks have not begun, so that they never begin."""
        if not self.has_begun:
            self.process.signal(signal.SIGKILL, group=True)

    def leave(self, step: Callable[[float], bool]) -> None:
        """Let the shims end, and so ``mpiexec``, once the ranks have ended.

        ``step`` waits until a time at most, and returns whether to wait no more.
        """
        _adopt_orphans(False)
        self._loop.unserve(self._listener.fileno())
        self._listener.close()
        for link in list(self._links):
            with contextlib.suppress(OSError):
                link.sendall(b".")
            self._hang_up(link)
        leftovers.remove(self._segments or set())
        until = time.monotonic() + LEAVE_S
        while self.is_started and self.process.exit_code() is None and time.monotonic() < until:
            if step(until):
                break


def _adopt_orphans(adopt: bool) -> None:
    """Let this process adopt descendants whose parent ends, or adopt no more."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt ranks that mpiexec starts")
