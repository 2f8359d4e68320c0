"""Decides which launch gets a report of progress: that of the function which makes the report.

A process that a launcher has started, or a worker of an executor, is one rank: all its threads
report to one launch. A program may also be in several launches of one rank at the same time, each
in a thread of its own, and each function runs in the thread that called ``launch``. The function's
context (``contextvars``) names its launch. Before Python 3.14 a thread that the function starts
lacks this context, unless the thread runs in a copy of it. A thread without the context reports to
the launch that began before the thread did. If several launches began before, the report is
refused, because nobody can tell to which of them it belongs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

Reporter = Callable[[Any], None]
OnProgress = Callable[[int, Any], None]  # of launch: it gets the rank, too


class _Call:
    """One call of a function by ``launch`` in this process."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.older = frozenset(threading.enumerate())  # threads that the function has not started


_of_process: Reporter | None = None  # set if this process is a rank
_of_context: ContextVar[_Call | None] = ContextVar("cobre_comm_launch", default=None)
_running: set[_Call] = set()  # calls that run in this process; each is a job of one rank


def is_rank() -> bool:
    """Whether a launcher has started this process, or ``launch`` has called the code that runs."""
    return _of_process is not None or _of_context.get() in _running


def report(payload: Any) -> None:
    """Pass a report of progress to its launch, if there is a launch."""
    reporter = _of_process or _of_call()
    if reporter is not None:
        reporter(payload)


def _of_call() -> Reporter | None:
    call = _of_context.get()
    if call is not None:
        return call.reporter if call in _running else None
    thread = threading.current_thread()
    calls = [call for call in tuple(_running) if thread not in call.older]
    if len(calls) > 1:
        raise RuntimeError(
            f"report_progress cannot tell which of {len(calls)} launches this thread belongs to; "
            "run the thread in a copy of the function's context: "
            "Thread(target=contextvars.copy_context().run, args=(work,))"
        )
    return calls[0].reporter if calls else None


@contextlib.contextmanager
def as_rank(reporter: Reporter) -> Iterator[None]:
    """Make this process a rank that reports to ``reporter``, until the block ends."""
    global _of_process
    _of_process = reporter
    try:
        yield
    finally:
        _of_process = None


@contextlib.contextmanager
def as_call(reporter: Reporter) -> Iterator[None]:
    """Make this thread a rank that reports to ``reporter``, until the block ends."""
    call = _Call(reporter)
    _running.add(call)
    token = _of_context.set(call)
    try:
        yield
    finally:
        _of_context.reset(token)
        _running.discard(call)
