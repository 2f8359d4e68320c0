"""Starting ranks by ``mpiexec``: it starts shims, and they have the ranks started.

``mpiexec`` gives each process the means to find its MPI peers. All else that a launcher does for
ranks is done here as for other backends: input and output, signals, the end. See ``shim``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cobre_comm.processes import endings
from cobre_comm.processes.endgame import ENDING_SIGNALS, NEVER
from cobre_comm.processes.guardian import Guardian
from cobre_comm.processes.mpi import leftovers, shim
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.mpi.rank import MpiRank
from cobre_comm.processes.mpi.variables import of_batch_job
from cobre_comm.processes.rank import Rank, RankProcess, code_without_reaping
from cobre_comm.run.lines import Stream
from cobre_comm.run.relay import Relay

SEND_S = 10.0  # for a shim to take its order, which it waits for
LEAVE_S = 3.0  # for mpiexec to tidy up after its processes have ended
_LINE_BYTES = 64


def check_system() -> None:
    """Raise ``ValueError`` where ranks cannot become children of the launcher."""
    if sys.platform != "linux":
        raise ValueError(
            "--backend mpi needs Linux; on this system run "
            "`COBRE_COMM_BACKEND=mpi mpiexec -n N python script.py`"
        )


class MpiStart:
    """One ``mpiexec`` and the connections of its shims.

    Parameters
    ----------
    ranks : sequence of MpiRank
        What is to be started.
    command : sequence of str
        What each of them runs.
    cores : mapping of int to int
        The core of each rank that is bound to one.
    relay : Relay
        Where sockets and pipes are waited for.
    guardian : Guardian
        Is told of every process.

    Attributes
    ----------
    ended_at : float
        When ``mpiexec`` began to end the job, or ended, other than by :meth:`leave`.
    """

    def __init__(
        self,
        ranks: Sequence[MpiRank],
        command: Sequence[str],
        *,
        cores: Mapping[int, int],
        relay: Relay,
        guardian: Guardian,
    ) -> None:
        self._ranks = {rank.rank: rank for rank in ranks}
        self._command = list(command)
        self._cores = cores
        self._relay = relay
        self._guardian = guardian
        self._links: dict[socket.socket, MpiRank | None] = {}
        # In no file system, so nothing is left of it; peers are checked by both sides.
        self._name = f"cobre-comm-{secrets.token_hex(16)}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{self._name}")
        self._listener.listen(len(ranks))
        self._listener.setblocking(False)
        relay.serve(self._listener.fileno(), self._accept)
        self._process: RankProcess | None = None
        self.ended_at = NEVER
        self._segments: set[str] | None = None  # not looked for yet
        numbers = signal.valid_signals()
        self._ignored = [n for n in numbers if signal.getsignal(n) is signal.SIG_IGN]

    def start(self, mpiexec: Mpiexec, streams: tuple[Stream, Stream]) -> None:
        """Start ``mpiexec``; its ranks come later."""
        _adopt_orphans()
        program = [sys.executable, "-I", "-S", shim.__file__, self._name, str(os.getpid())]
        self._process = RankProcess(
            endings.STARTER,
            mpiexec.start_command(len(self._ranks), program),
            mpiexec.environment,
            core=None,
            streams=streams,
        )
        self._guardian.watch(self._process.pid)
        for pipe, stream in self._process.pipes():
            self._relay.add(pipe, stream)

    @property
    def process(self) -> RankProcess:
        """``mpiexec`` itself."""
        assert self._process is not None
        return self._process

    def look(self) -> None:
        """See whether ``mpiexec`` has ended, which it should not do before :meth:`leave`."""
        if not self.process.look():
            return
        assert self.process.end is not None
        self.ended_at = min(self.ended_at, self.process.end.at)
        self._accept()
        for rank in self._ranks.values():
            if not rank.pid and rank not in self._links.values():
                rank.never_begins()

    @property
    def end(self) -> endings.End | None:
        """How ``mpiexec`` ended the job, if it did; known once it has been reaped."""
        if self.ended_at == NEVER:
            return None
        seen = self.process.end
        code = seen.code if seen is not None else max(0, self.process.process.returncode)
        # It may have done so because a rank ended: then that rank is the cause.
        return endings.End(endings.STARTER, code or 1, self.ended_at, secondary=True)

    def judged(self, rank: Rank) -> endings.End | None:
        """Return how a rank ended, as :attr:`end` makes it appear."""
        return self._ranks[rank.rank].judged(self.end)

    def job_ends(self) -> None:
        """Prepare for the end of a job that has failed or was interrupted; may be called again.

        ``mpiexec`` is muted, for it only tells of the end of shims, and ranks that have called
        MPI_Abort are killed.
        """
        if self._segments is None:
            found = [leftovers.segments_of(rank.pid) for rank in self._ranks.values()]
            self._segments = set().union(*found)
        for stream in self.process.streams or ():
            stream.is_muted = True
        if self.ended_at != NEVER:
            for rank in self._ranks.values():
                rank.job_aborted()

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
            self._relay.serve(link.fileno(), partial(self._hear, link))

    def _hear(self, link: socket.socket) -> None:
        """Take a line: first ``RANK PARENT`` of the shim, then ``PID`` of the rank."""
        # Lines are far shorter than what a socket may split, and the second answers an order.
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
            if rank is None or not rank.standard or self.process.end is not None:
                self._hang_up(link)
                return
            self._links[link] = rank
            self._guardian.watch(int(words[1]))
            self._order(link, rank)
        else:
            self._guardian.watch(int(words[0]))
            rank.began(int(words[0]))

    def _order(self, link: socket.socket, rank: MpiRank) -> None:
        order: dict[str, Any] = {
            "command": self._command,
            "core": self._cores.get(rank.rank),
            "environment": of_batch_job(os.environ),
            "ignored": self._ignored,
            "launcher": os.getpid(),
        }
        data = json.dumps(order).encode()
        link.settimeout(SEND_S)
        try:
            socket.send_fds(link, [shim.HEADER.pack(len(data))], rank.standard)
            link.sendall(data)
        except OSError:
            self._hang_up(link)
        else:
            link.setblocking(False)
            rank.sent()

    def _hang_up(self, link: socket.socket) -> None:
        """Forget a shim, which ends without us, or did."""
        rank = self._links.pop(link)
        self._relay.unserve(link.fileno())
        link.close()
        if rank is not None and not rank.pid and rank.end is None:
            rank.never_begins()

    def end_starting(self) -> None:
        """Kill ``mpiexec`` if some ranks have not begun: they never shall."""
        if not all(rank.pid for rank in self._ranks.values()):
            self.process.signal(signal.SIGKILL, group=True)

    def leave(self) -> None:
        """Let the shims end, and so ``mpiexec``; wait for that, not for ever. Ranks have ended."""
        self._relay.unserve(self._listener.fileno())
        self._listener.close()
        for link in list(self._links):
            with contextlib.suppress(OSError):
                link.sendall(b".")
            self._hang_up(link)
        leftovers.remove(self._segments or set())
        until = time.monotonic() + LEAVE_S
        while code_without_reaping(self.process.pid) is None and time.monotonic() < until:
            if any(number in ENDING_SIGNALS for number in self._relay.step(until)):
                break


def _adopt_orphans() -> None:
    """Become the parent of every descendant whose own has ended."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt ranks that mpiexec starts")
