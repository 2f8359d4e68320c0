"""What Ctrl-C, and a signal that asks to stop, do to a program that waits in ``launch``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from cobre_comm.reports.graceful import VARIABLE, graceful_signals
from cobre_comm.system.streams import write_error

Value = TypeVar("Value")


@contextlib.contextmanager
def forwarded(send: Callable[[int], None]) -> Iterator[None]:
    """Call ``send`` with each signal that asks to stop; its second arrival acts as usual.

    Python runs handlers in the main thread alone, so in another thread no signal is forwarded.
    """
    before: dict[int, Any] = {}

    def forward(number: int, frame: object) -> None:
        signal.signal(number, before.pop(number))
        send(number)

    if threading.current_thread() is threading.main_thread():
        for number in graceful_signals(os.environ.get(VARIABLE, "")):
            before[number] = signal.signal(number, forward)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _heard_by(hear: Callable[..., None]) -> Iterator[None]:
    """Call ``hear`` on each Ctrl-C, with the previous handler and the handler's arguments."""
    before: Any = signal.getsignal(signal.SIGINT)
    is_heard = threading.current_thread() is threading.main_thread() and callable(before)
    if is_heard:
        signal.signal(signal.SIGINT, lambda *taken: hear(before, *taken))
    try:
        yield
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Delay a Ctrl-C until the block ends.

    Blocking SIGINT would not work, because a mask of signals applies to one thread alone.
    """
    came: list[Any] = []
    try:
        with _heard_by(lambda *call: came.append(call)):
            yield
    finally:
        for handler, *taken in came[:1]:
            handler(*taken)


def outcome_of(make: Callable[[], Value]) -> tuple[Value | None, BaseException | None]:
    """Return the result of code that is not ours, or the exception that it raised.

    Such code runs, for instance, when a value is unpickled. A SystemExit is returned, and so is a
    KeyboardInterrupt that the code raises by itself. The exception of a Ctrl-C is raised.
    """
    came = []

    def note(handler: Callable[..., None], *taken: object) -> None:
        came.append(taken)
        handler(*taken)

    with _heard_by(note):
        try:
            return make(), None
        except BaseException as error:
            if came:
                raise
            return None, error


def interrupted(size: int) -> KeyboardInterrupt:
    """Return the ``KeyboardInterrupt`` of ``launch``; if nobody catches it, Python prints one line.

    A traceback would only show that this program waits for the workers. If the program has an
    excepthook of its own, or is a notebook, the hook or the notebook shows the exception.
    """
    error = KeyboardInterrupt(f"launch has ended its {size} ranks")
    if sys.excepthook is sys.__excepthook__:

        def one_line(
            kind: type[BaseException], value: BaseException, trace: TracebackType | None
        ) -> None:
            if value is error:
                write_error(f"KeyboardInterrupt: {error}")
            else:
                sys.__excepthook__(kind, value, trace)

        sys.excepthook = one_line
    return error
