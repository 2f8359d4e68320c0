"""The life of a process that ``launch`` has started."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import time
from typing import Any

from cobre_comm.errors import InvalidCommunicator
from cobre_comm.factory import create_communicator
from cobre_comm.launching import order
from cobre_comm.launching.pickling import dumps
from cobre_comm.launching.replies import Failed, ProgressReport, value_message
from cobre_comm.launching.reporting import as_rank
from cobre_comm.reports import frames, raised, report_pipe, seat, stack_signal
from cobre_comm.reports.report_pipe import Met, ReportPipe, exit_code_of
from cobre_comm.system.streams import take_stdin, write_whole_lines


def main() -> None:
    """Act as a rank: call the function with a communicator; send the outcome to the launcher."""
    pipe = report_pipe.claim("launch")
    seat.claim()
    stack_signal.listen()
    write_whole_lines()
    orders = take_stdin()
    message = frames.receive(orders)
    os.close(orders)
    if pipe is None or message is None:
        sys.exit(1)  # the launcher has gone
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked since the start
        _run(pipe, message)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are reported too
        raised.end_all(error)
        pipe.say(Failed.of(error))
        sys.exit(exit_code_of(error))


def _run(pipe: ReportPipe, message: bytes) -> None:
    """Call the function of the order with a communicator; send the message with its value."""
    fn, args, wants_progress = order.unpack(message)

    def reporter(payload: Any) -> None:
        if wants_progress:
            pipe.send(dumps(ProgressReport(payload)))

    with as_rank(reporter):
        comm = create_communicator()
        pipe.send(pickle.dumps(Met()))
        start = time.perf_counter()
        try:
            value = fn(comm, *args)
            wall_time_s = time.perf_counter() - start
        finally:
            with contextlib.suppress(InvalidCommunicator):  # a user's thread may still be in it
                comm.close()
        pipe.send(value_message(comm, value, wall_time_s))
