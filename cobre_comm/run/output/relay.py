"""The relay, which moves the output of ranks to the launcher's stdout and stderr."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable
from functools import partial

from cobre_comm.processes.loop import LauncherLoop
from cobre_comm.run.output.lines import Stream
from cobre_comm.run.output.outlet import Outlet

READ_BYTES = 2**16  # the capacity of a pipe; after one read it is another pipe's turn


class Relay:
    """Moves bytes from ranks to outlets; a full outlet stops only the ranks that write to it."""

    def __init__(self, outlets: Iterable[Outlet], loop: LauncherLoop) -> None:
        self._outlets = {outlet.fd: outlet for outlet in outlets}
        self._loop = loop
        self._streams: dict[int, Stream] = {}
        self._paused: set[int] = set()  # full outlets; pipes that lead to them are not read

    def add(self, pipe: int, stream: Stream) -> None:
        """Read a pipe into a stream from now on, and close the pipe at its end."""
        os.set_blocking(pipe, False)
        self._streams[pipe] = stream
        self._listen(pipe)

    def _listen(self, pipe: int) -> None:
        self._loop.serve(pipe, partial(self._read, pipe))

    @property
    def is_reading(self) -> bool:
        """Whether some pipe has not ended yet."""
        return bool(self._streams)

    @property
    def is_held_up(self) -> bool:
        """Whether pipes are not read because an outlet is full."""
        return bool(self._paused)

    @property
    def is_done(self) -> bool:
        """Whether every pipe has ended and everything is written."""
        return not self._streams and all(outlet.is_empty for outlet in self._outlets.values())

    def step(self, until: float) -> None:
        """Serve the pipes and outlets that are ready; wait until some are, or until a time."""
        self._loop.step(min([until, *(s.show_partial_at for s in self._streams.values())]))
        self._show_partials()
        self._arm()

    def close(self) -> None:
        """Read the rest of the pipes, and finish the streams."""
        for pipe in list(self._streams):
            self._read(pipe)
            if pipe in self._streams:
                self._end(pipe)
        self._arm()

    def _read(self, pipe: int) -> None:
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody has that pseudo-terminal open any more
            data = b""
        stream = self._streams[pipe]
        if not data or stream.outlet.is_broken:
            self._end(pipe)
        else:
            stream.feed(data)

    def _end(self, pipe: int) -> None:
        # If nobody reads the output any more, the next write of the rank fails, as without a
        # launcher.
        stream = self._streams.pop(pipe)
        stream.finish()
        self._loop.unserve(pipe)
        os.close(pipe)

    def _write(self, outlet: Outlet) -> None:
        outlet.write_some()
        if outlet.is_broken:
            for pipe in self._pipes_to(outlet):
                self._end(pipe)

    def _show_partials(self) -> None:
        now = time.monotonic()
        for stream in self._streams.values():
            if stream.show_partial_at <= now:
                stream.show_partial()

    def _arm(self) -> None:
        """Make the loop serve outlets with bytes to write, and pipes that lead to a free outlet."""
        for fd, outlet in self._outlets.items():
            if outlet.is_empty:
                self._loop.unserve(fd)
            else:
                self._loop.serve(fd, partial(self._write, outlet), select.POLLOUT)
            if outlet.is_full and fd not in self._paused:
                self._paused.add(fd)
                for pipe in self._pipes_to(outlet):
                    self._loop.unserve(pipe)
            elif outlet.has_room and fd in self._paused:
                self._paused.remove(fd)
                for pipe in self._pipes_to(outlet):
                    self._listen(pipe)

    def _pipes_to(self, outlet: Outlet) -> list[int]:
        return [pipe for pipe, stream in self._streams.items() if stream.outlet is outlet]
