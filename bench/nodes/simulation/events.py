"""Simulated time: processes that wait for a time, or for each other.

A process is a generator. It yields the seconds that it waits, a :class:`Signal` that another one
gives, or a :class:`Process` whose end it awaits. A simulation without noise has no random number,
and events of the same time happen in the order in which they were asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable
from typing import Any

Steps = Generator[Any, Any, None]


class Signal:
    """What processes wait for; each is woken once."""

    def __init__(self) -> None:
        self._waiting: list[Process] = []

    def give(self) -> None:
        waiting, self._waiting = self._waiting, []
        for process in waiting:
            process.resume()

    def wake(self, process: Process) -> None:
        """Have a process woken by the next :meth:`give`."""
        self._waiting.append(process)


class Process(Signal):
    """A generator under way, which is a signal of its own end."""

    def __init__(self, clock: Clock, steps: Steps) -> None:
        super().__init__()
        self._clock, self._steps = clock, steps
        self.has_ended = False

    def resume(self) -> None:
        """Go on until the next wait."""
        for wait in self._steps:
            if isinstance(wait, Signal):
                if not getattr(wait, "has_ended", False):
                    wait.wake(self)
                    return
            elif wait > 0:
                self._clock.after(wait, self.resume)
                return
        self.has_ended = True
        self.give()


class Clock:
    """The time, and what is to happen.

    Attributes
    ----------
    now : float
        Seconds since the begin.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._asked = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Have something happen in so many seconds."""
        self._asked += 1
        heapq.heappush(self._events, (self.now + seconds, self._asked, act))

    def start(self, steps: Steps) -> Process:
        """Start a process."""
        process = Process(self, steps)
        process.resume()
        return process

    def together(self, parts: Iterable[Steps]) -> Steps:
        """Start processes, and await the end of all."""
        yield from [self.start(part) for part in parts]

    def run(self) -> float:
        """Let everything happen; return the time of the last event."""
        while self._events:
            self.now, _, act = heapq.heappop(self._events)
            act()
        return self.now


class Servers:
    """One or several servers that take jobs in the order in which they come.

    ``credit``: seconds of idle time that a server makes up for later, as a token bucket does.
    """

    def __init__(self, clock: Clock, number: int = 1, credit: float = 0.0) -> None:
        self._clock, self._free, self._credit = clock, [0.0] * number, credit

    def delay(self, seconds: float) -> float:
        """Take a job; return the seconds from now until it is done."""
        done = max(self._free[0], self._clock.now - self._credit) + seconds
        heapq.heapreplace(self._free, done)
        return max(done - self._clock.now, 0.0)

    @property
    def backlog(self) -> float:
        """The seconds from now until a server is free."""
        return max(self._free[0] - self._clock.now, 0.0)
