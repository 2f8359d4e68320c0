"""The life of a process that ``launch`` started."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from cobre_comm.common import frames, raised, report_pipe, seat
from cobre_comm.common.report_pipe import Met, ReportPipe, exit_code_of
from cobre_comm.errors import InvalidCommunicator
from cobre_comm.factory import create_communicator
from cobre_comm.launching import order as orders
from cobre_comm.launching.messages import Done, Failed, Progress
from cobre_comm.launching.pickling import dumps
from cobre_comm.launching.reporting import as_rank

STDIN = 0


def main() -> None:
    """Be a rank: call the function with a communicator, and send the outcome to the launcher."""
    pipe = report_pipe.claim("launch")
    seat.claim()
    message = frames.receive(STDIN)
    if pipe is None or message is None:
        sys.exit(1)  # the launcher has gone
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Workers.start has blocked it
        _run(pipe, message)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are reports too
        raised.end_all(error)
        with contextlib.suppress(OSError):  # the launcher has gone
            pipe.send(pickle.dumps(Failed.of(error)))
        sys.exit(exit_code_of(error))


def _run(pipe: ReportPipe, message: bytes) -> None:
    fn, args, wants_progress = orders.unpack(message)

    def reporter(payload: Any) -> None:
        if wants_progress:
            pipe.send(dumps(Progress(payload)))

    with as_rank(reporter):
        _send_value(pipe, *_call(pipe, fn, args))


def _call(pipe: ReportPipe, fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Done, int]:
    comm = create_communicator()
    pipe.send(pickle.dumps(Met()))
    start = time.perf_counter()
    try:
        value = fn(comm, *args)
        wall_time_s = time.perf_counter() - start
    finally:
        with contextlib.suppress(InvalidCommunicator):  # a thread of the user's is still in it
            comm.close()
    return Done(value, comm.backend, wall_time_s), comm.rank


def _send_value(pipe: ReportPipe, done: Done, rank: int) -> None:
    try:
        message = dumps(done)
    except Exception as error:  # a __reduce__ of others may raise anything
        name = f"{type(done.value).__module__}.{type(done.value).__qualname__}"
        raise TypeError(
            f"the return value of rank {rank} is a {name}, which cannot be sent to the parent: "
            f"{error}"
        ) from error
    pipe.send(message)
