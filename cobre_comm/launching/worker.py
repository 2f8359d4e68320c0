"""What happens in a process that ``launch`` started."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from cobre_comm.errors import InvalidCommunicator
from cobre_comm.factory import create_communicator
from cobre_comm.launching.messages import Channel, Done, Failed, Progress
from cobre_comm.processes.exec_shim import die_with_parent

Reporter = Callable[[Any], None]

_reporter: Reporter | None = None  # of the worker that this process is


def report(payload: Any) -> None:
    """Report progress, if this process is a worker."""
    if _reporter is not None:
        _reporter(payload)


def is_worker() -> bool:
    """Whether a function that ``launch`` called is running here."""
    return _reporter is not None


@contextlib.contextmanager
def reporting(reporter: Reporter) -> Any:
    """Make this process a worker that reports to ``reporter``."""
    global _reporter
    _reporter = reporter
    try:
        yield
    finally:
        _reporter = None


def worker_main(
    parent: int,
    rank: int,
    connection: Connection,
    wants_progress: bool,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    """Be a rank: call ``fn`` with a communicator, tell the parent how it went."""
    die_with_parent(parent)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # so that the worker's own children can be ended with it
    channel = Channel(connection)
    reporter: Reporter = (lambda payload: channel.send(Progress(payload))) if wants_progress else (
        lambda payload: None)  # fmt: skip
    try:
        with reporting(reporter):
            done = _call(fn, args)
        _send_value(channel, done, rank)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are reports too
        code = exit_code_of(error)
        with contextlib.suppress(OSError):  # the parent has gone
            channel.send(Failed.of(error, code))
        sys.exit(code)


def _call(fn: Callable[..., Any], args: tuple[Any, ...]) -> Done:
    comm = create_communicator()
    start = time.perf_counter()
    try:
        value = call_to_value(fn, comm, args)
        wall_time_s = time.perf_counter() - start
    finally:
        with contextlib.suppress(InvalidCommunicator):  # a thread of the user's is still in it
            comm.close()
    return Done(value, comm.backend, wall_time_s)


def call_to_value(fn: Callable[..., Any], comm: Any, args: tuple[Any, ...]) -> Any:
    """Call ``fn``; ``sys.exit(0)`` in it means that it returned None."""
    try:
        return fn(comm, *args)
    except SystemExit as error:
        if exit_code_of(error) != 0:
            raise
        return None


def exit_code_of(error: BaseException) -> int:
    """Return the exit code that Python would end with."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _send_value(channel: Channel, done: Done, rank: int) -> None:
    if rank != 0:
        done = Done(None, done.backend, done.wall_time_s)
    try:
        channel.send(done)
    except OSError:
        raise
    except Exception as error:  # whatever a foreign __reduce__ raises
        kind = f"{type(done.value).__module__}.{type(done.value).__qualname__}"
        raise TypeError(
            f"the return value of rank 0 is a {kind}, which cannot be sent to the parent: {error}"
        ) from error
