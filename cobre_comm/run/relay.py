"""The launcher's only waiting place: ranks' pipes, its own outlets, and signals."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from cobre_comm.run.lines import Stream
from cobre_comm.run.outlet import Outlet

READ_BYTES = 2**16  # a pipe's capacity: no rank gets more than one pipe's turn
_HUNG_UP = select.POLLHUP | select.POLLERR


class SignalInbox:
    """Signals as bytes in a pipe, so that they end a wait and are handled in order."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(numbers)
        self._old: dict[int, object] = {}
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in self._numbers:
            old = signal.getsignal(number)
            if old is not signal.SIG_IGN or number == signal.SIGCHLD:  # nohup means it
                self._old[number] = old
                signal.signal(number, lambda number, frame: None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, old in self._old.items():
            signal.signal(number, old or signal.SIG_DFL)  # type: ignore[arg-type]
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Return what becomes readable when a signal comes."""
        return self._reader

    def take(self) -> bytes:
        """Return the numbers of the signals that came."""
        try:
            return os.read(self._reader, READ_BYTES)
        except BlockingIOError:
            return b""


class Relay:
    """Moves bytes from ranks to outlets; a full outlet stops only those who write to it.

    Parameters
    ----------
    outlets : iterable of Outlet
        Where the streams end.
    inbox : SignalInbox
        Ends a wait.
    """

    def __init__(self, outlets: Iterable[Outlet], inbox: SignalInbox) -> None:
        self._outlets = {outlet.fd: outlet for outlet in outlets}
        self._inbox = inbox
        self._streams: dict[int, Stream] = {}
        self._paused: set[int] = set()  # outlets
        self._poll = select.poll()
        self._poll.register(inbox.fileno(), select.POLLIN)
        self._waiting: set[int] = set()  # outlets that have something to write
        self._served: dict[int, Callable[[], None]] = {}

    def add(self, pipe: int, stream: Stream) -> None:
        """Read that pipe into that stream, from now on."""
        os.set_blocking(pipe, False)
        self._streams[pipe] = stream
        self._poll.register(pipe, select.POLLIN)

    def serve(self, fd: int, handler: Callable[[], None]) -> None:
        """Call ``handler`` whenever that descriptor can be read, until :meth:`unserve`."""
        self._served[fd] = handler
        self._poll.register(fd, select.POLLIN)

    def unserve(self, fd: int) -> None:
        """Look at that descriptor no more; call it before closing the descriptor."""
        del self._served[fd]
        self._poll.unregister(fd)

    @property
    def is_reading(self) -> bool:
        """Whether a pipe has not ended yet."""
        return bool(self._streams)

    @property
    def is_held_up(self) -> bool:
        """Whether pipes are not read because an outlet is full."""
        return bool(self._paused)

    @property
    def is_done(self) -> bool:
        """Whether every pipe has ended and everything is written."""
        return not self._streams and all(outlet.is_empty for outlet in self._outlets.values())

    def step(self, until: float) -> bytes:
        """Wait until something happens, at most until then; return the signals that came."""
        now = time.monotonic()
        partial = [at for s in self._streams.values() if (at := s.show_partial_at) is not None]
        until = min([until, *partial])
        timeout_ms = None if until == float("inf") else max(0.0, until - now) * 1000 + 0.5
        signals = b""
        for fd, event in self._poll.poll(timeout_ms):
            if fd == self._inbox.fileno():
                signals += self._inbox.take()
            elif fd in self._streams:
                self._read(fd)
            elif fd in self._waiting:
                self._write(self._outlets[fd], hung_up=bool(event & _HUNG_UP))
            elif fd in self._served:
                self._served[fd]()
        if partial:
            self._show_partials()
        self._arm()
        return signals

    def close(self) -> None:
        """Stop reading; keep what came."""
        for pipe in list(self._streams):
            self._end(pipe)
        self._arm()

    def _read(self, pipe: int) -> None:
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return
        stream = self._streams[pipe]
        if not data or stream.outlet.is_broken:
            self._end(pipe)
        else:
            stream.feed(data)

    def _end(self, pipe: int) -> None:
        stream = self._streams.pop(pipe)
        stream.finish()
        if stream.outlet.fd not in self._paused:
            self._poll.unregister(pipe)
        if stream.outlet.is_broken:
            # The rank shall learn, as it would without a launcher, that nobody reads any more.
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, pipe, inheritable=False)
            os.close(null)

    def _write(self, outlet: Outlet, *, hung_up: bool) -> None:
        outlet.write_some()
        if outlet.is_broken or hung_up:
            for pipe, stream in list(self._streams.items()):
                if stream.outlet.is_broken and outlet is stream.outlet:
                    self._end(pipe)

    def _show_partials(self) -> None:
        now = time.monotonic()
        for stream in self._streams.values():
            at = stream.show_partial_at
            if at is not None and at <= now:
                stream.show_partial()

    def _arm(self) -> None:
        """Bring what ``poll`` looks at up to date with the outlets."""
        for fd, outlet in self._outlets.items():
            if not outlet.is_empty and fd not in self._waiting:
                self._poll.register(fd, select.POLLOUT)
                self._waiting.add(fd)
            elif outlet.is_empty and fd in self._waiting:
                self._poll.unregister(fd)
                self._waiting.remove(fd)
            if outlet.is_full and fd not in self._paused:
                self._paused.add(fd)
                for pipe in self._pipes_to(outlet):
                    self._poll.unregister(pipe)
            elif outlet.has_room and fd in self._paused:
                self._paused.remove(fd)
                for pipe in self._pipes_to(outlet):
                    self._poll.register(pipe, select.POLLIN)

    def _pipes_to(self, outlet: Outlet) -> list[int]:
        return [pipe for pipe, stream in self._streams.items() if stream.outlet is outlet]
