"""Signals that set the stop flag of this process (``collective/stop.py``).

The handler is compiled, so it stores its one word at once, even while compiled code runs. Python
runs its own handlers only between two instructions of Python, and compiled code may delay these for
long.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from cobre_kernels.collective.stop import STOP_FLAG, handle_signal_kernel, stop_flag_place
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED
from cobre_kernels.machine.record import poke_now

ACTION_BYTES = 512  # longer than any struct sigaction, which begins with the handler
_libc = ctypes.CDLL(None, use_errno=True)
_libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
_libc.signal.restype = ctypes.c_void_p


class StopSignals:
    """The signals that communicators have taken, and the actions that the signals had before."""

    def __init__(self) -> None:
        self._words = STOP_FLAG.array()
        self.flag: int = STOP_FLAG.of(self._words).address  # the address of the stop flag
        self._requested: int = STOP_FLAG.of(self._words).requested
        self._takers: Counter[int] = Counter()
        self._before: dict[int, Any] = {}
        self._lock = threading.RLock()  # reentrant: a garbage collection may close a communicator

    def take(self, numbers: Iterable[int]) -> Callable[[], None]:
        """Make signals set the flag; return an idempotent function that gives the signals back."""
        taken = set(numbers)
        handler = self._handler
        with self._lock:
            for number in taken:
                if not self._takers[number]:
                    self._before[number] = _action_of(number)
                    _libc.signal(number, handler)
                self._takers[number] += 1

        def give_back() -> None:
            with self._lock:
                while taken:
                    self._give_back(taken.pop())
                if not self._takers.total():
                    poke_now(self._requested, 0)

        return give_back

    def _give_back(self, number: int) -> None:
        takers = self._takers[number]
        self._takers[number] = max(0, takers - 1)
        if takers == 1:
            before, now = self._before.pop(number), _action_of(number)
            if ctypes.c_void_p.from_buffer(now).value == self._handler:  # ours is still in place
                _libc.sigaction(number, before, None)

    def in_child(self) -> None:
        """Restore the actions of all signals in a forked child, which is no rank."""
        self._lock = threading.RLock()
        for number in [*self._before]:
            self._takers[number] = 1
            self._give_back(number)
        poke_now(self._requested, 0)

    @functools.cached_property
    def _handler(self) -> int:
        if NOTHING_IS_COMPILED:
            raise ValueError(
                "a signal asks to stop by a compiled handler: unset NUMBA_DISABLE_JIT, or take no "
                "signals (COBRE_COMM_GRACEFUL)"
            )
        poke_now(stop_flag_place(), self._requested)
        return int(handle_signal_kernel.address)


def _action_of(number: int) -> Any:
    """Return the action of a signal as the C library's ``struct sigaction``."""
    action = ctypes.create_string_buffer(ACTION_BYTES)
    _libc.sigaction(number, None, action)
    return action


STOP_SIGNALS = StopSignals()
os.register_at_fork(after_in_child=STOP_SIGNALS.in_child)
