"""Starts ranks over MPI: ``mpiexec`` starts shims, and for each shim the launcher starts a rank.

A shim sends the launcher what ``mpiexec`` gives to a rank: the means to find its MPI peers. All
else is the same as for other backends, because the rank is a child of the launcher.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

from cobre_comm.processes.endings import STARTER, Ending
from cobre_comm.processes.loop import NEVER, LauncherLoop
from cobre_comm.processes.mpi import leftovers, shim
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.reports.graceful import FORWARDED

LEAVE_S = 3.0  # the time for mpiexec to clean up after its processes have ended
_LINE_BYTES = 64

# Starts a rank: gets its number, the environment from mpiexec, and descriptors to inherit.
Begin = Callable[[int, dict[str, str], tuple[int, ...]], None]


def check_system() -> None:
    """Raise ``ValueError`` where shims cannot send descriptors and environments."""
    if sys.platform != "linux":
        raise ValueError(
            "--backend mpi needs Linux; on this system run "
            "`COBRE_COMM_BACKEND=mpi mpiexec -n N python script.py`"
        )


class MpiStart:
    """One ``mpiexec`` for ``size`` ranks, and the connections of its shims, served by ``loop``.

    ``standard`` has the standard streams of ``mpiexec``. ``begin`` starts a rank when its shim has
    connected. ``watch`` is called with the process id of ``mpiexec``, and of each process that
    starts shims.
    """

    def __init__(
        self,
        mpiexec: Mpiexec,
        size: int,
        standard: Standard,
        loop: LauncherLoop,
        begin: Begin,
        watch: Callable[[int], None],
    ) -> None:
        self._awaited = set(range(size))  # ranks that have not been started yet
        self._loop = loop
        self._begin = begin
        self._watch = watch
        self._links: dict[socket.socket, bool] = {}  # by shim: whether its rank has been started
        self.ended_at = NEVER  # when mpiexec began to end the job, or ended, before ``leave``
        self._segments = set[str]()  # files of MPI that ranks have mapped
        self._stage = 0  # the last stage in which such files were looked for
        # The socket has an abstract name, in no file system, so it leaves nothing behind. Each end
        # checks its peer.
        name = f"cobre-comm-{os.urandom(16).hex()}"
        words = [name, os.getpid(), *map(int, FORWARDED)]
        program = [sys.executable, "-I", "-S", shim.__file__, *map(str, words)]
        command = mpiexec.start_command(size, program)
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(f"\0{name}")
            self._listener.listen(size)
            self._listener.setblocking(False)
            self.process = RankProcess(
                STARTER, command, mpiexec.environment, standard, reports=False
            )
        except BaseException:
            self._listener.close()
            raise
        loop.serve(self._listener.fileno(), self._accept)
        watch(self.process.pid)

    @property
    def is_starting(self) -> bool:
        """Whether more ranks may be started."""
        return bool(self._awaited) and self.process.ending is None

    def look(self) -> None:
        """Note an early end of ``mpiexec``, after which no more ranks can be started."""
        self.process.look()
        if self.process.ending is not None:
            self.ended_at = min(self.ended_at, self.process.ending.at)

    @property
    def ending(self) -> Ending | None:
        """The ending of ``mpiexec``, if it has ended the job; its code is final after its exit."""
        if self.ended_at == NEVER:
            return None
        seen = self.process.ending
        code = seen.code if seen is not None else max(0, self.process.exit_code() or 0)
        # If mpiexec has ended the job because a rank ended, the cause is that rank.
        return Ending(STARTER, code or 1, self.ended_at)

    def find_leftovers(self, ranks: Iterable[RankProcess], stage: int) -> None:
        """Note MPI's files in shared memory, because the job may end without MPI_Finalize.

        The files are looked for twice: when the ranks have met, and when the job is to end.
        """
        if stage > self._stage:
            self._stage = stage
            self._segments.update(*(leftovers.segments_of(rank.pid) for rank in ranks))

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", peer)[1] != os.getuid():
            link.close()
            return
        link.setblocking(False)
        self._links[link] = False
        self._loop.serve(link.fileno(), partial(self._hear, link))

    def _hear(self, link: socket.socket) -> None:
        """Start the rank of a shim, or note that the shim has ended."""
        try:
            line, descriptors, _, _ = socket.recv_fds(link, _LINE_BYTES, 2, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            line, descriptors = b"", []
        try:
            if line:
                self._take(link, *map(int, line.split()), *descriptors)
            else:
                if self._links[link]:
                    self.ended_at = min(self.ended_at, time.monotonic())
                self._hang_up(link)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _take(
        self, link: socket.socket, rank: int, parent: int, given: int, *inherited: int
    ) -> None:
        """Start a rank with what ``mpiexec`` has given to its shim."""
        if rank not in self._awaited or not self.is_starting:
            self._hang_up(link)
            return
        self._watch(parent)
        with open(given, "rb", closefd=False) as file:
            file.seek(0)
            environment = marshal.load(file)
        for descriptor in inherited:  # the rank inherits the descriptor under this number
            environment[shim.DESCRIPTOR_VARIABLE] = str(descriptor)
        self._begin(rank, environment, inherited)
        self._awaited.remove(rank)
        self._links[link] = True

    def _hang_up(self, link: socket.socket) -> None:
        """Close the connection of a shim that has ended, or that is to end."""
        del self._links[link]
        self._loop.unserve(link.fileno())
        link.close()

    def end_starting(self) -> None:
        """If some ranks have not been started, kill ``mpiexec``, so that they are never started."""
        if self._awaited:
            self._awaited.clear()
            self.process.signal(signal.SIGKILL, group=True)

    def leave(self, step: Callable[[float], bool]) -> None:
        """Make the shims end, and so ``mpiexec``; call this when the ranks have ended.

        ``step`` waits until a given time at most, and returns whether to stop waiting.
        """
        self._loop.unserve(self._listener.fileno())
        self._listener.close()
        for link in list(self._links):
            with contextlib.suppress(OSError):
                link.sendall(b".")
            self._hang_up(link)
        leftovers.remove(self._segments)
        until = time.monotonic() + LEAVE_S
        while self.process.exit_code() is None and time.monotonic() < until:
            if step(until):
                break
