"""The process of one rank: receives bodies, runs them, reports."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import os
import pickle
import signal
import sys
import traceback
from typing import Any, NoReturn

from cobre_comm.launching.replies import Failed
from cobre_comm.reports import frames, report_pipe
from cobre_comm.reports.report_pipe import ReportPipe, exit_code_of
from cobre_comm.system.streams import take_stdin, write_whole_lines
from cobre_comm.testing.ranks.compile_once import once_in_all_ranks

NO_COMMUNICATOR = ""


class BodyRunner:
    """Runs bodies on communicators, which it makes from the environment and keeps by key."""

    def __init__(self, pipe: ReportPipe) -> None:
        self._pipe = pipe
        self._communicators: dict[str, Any] = {}

    def serve(self, orders: int) -> None:
        """Run the orders that arrive through a descriptor, until the other end is closed."""
        pid = os.getpid()
        while (order := frames.receive(orders)) is not None:
            try:
                report = self._run(order)
            except SystemExit as exception:
                # Sent now, because MPI may wait for the other ranks when this process ends.
                sys.stdout.flush()
                self._send(("exit", exit_code_of(exception)))
                raise
            if os.getpid() != pid:
                os._exit(1)  # a child that the body has forked and not ended is no rank
            self._send(report)
        for comm in self._communicators.values():
            comm.close()

    def _send(self, report: tuple[str, Any]) -> None:
        try:
            message = pickle.dumps(report)
        except Exception as exception:  # the value does not pickle
            message = pickle.dumps(("exception", Failed.of(exception)))
        self._pipe.send(message)

    def _run(self, order: bytes) -> tuple[str, Any]:
        try:
            key, keep, environment, body, args = _unpack(order)
            once_in_all_ranks()
            _pass_over_modules()
            comm = self._communicator(key, environment)
            try:
                value = body(comm, *args)
            except SystemExit:
                raise  # a body that ends its process needs no cleanup
            except BaseException:
                self._give_up(key, keep)
                raise
            self._give_up(key, keep)
        except SystemExit:
            raise
        except BaseException as exception:
            failed = Failed.of(exception)
            traceback.clear_frames(exception.__traceback__)  # frees the body's objects
            return "exception", failed
        return "value", value

    def _give_up(self, key: str, keep: bool) -> None:
        if key != NO_COMMUNICATOR and not keep:
            self._communicators.pop(key).close()

    def _communicator(self, key: str, environment: dict[str, str]) -> Any:
        if key == NO_COMMUNICATOR:
            os.environ.update(environment)
            return None
        if key not in self._communicators:
            before = dict(os.environ)
            os.environ.update(environment)
            try:
                from cobre_comm import create_communicator

                self._communicators[key] = create_communicator()
            finally:
                os.environ.clear()
                os.environ.update(before)
        return self._communicators[key]


@functools.cache
def _pass_over_modules() -> None:
    """Exempt what the import of the first body has made from garbage collections: it stays."""
    gc.freeze()


def _unpack(order: bytes) -> tuple[Any, ...]:
    path, payload = pickle.loads(order)
    sys.path[:] = path
    return tuple(pickle.loads(payload))


def prepare_process() -> None:
    """Make ``SIGUSR1`` write all stacks, make Ctrl-C raise, and write output as whole lines.

    A process that a shell starts in the background ignores ``SIGINT``, so Python sets no handler.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    write_whole_lines()


def leave() -> NoReturn:
    """End at once: an orderly end of numba and LLVM would take half a second on each rank.

    MPI is finalized first. Then the exit handlers of the C library run, because a handler of MPICH
    tells ``mpiexec`` that this rank has finalized. If a rank ended without that, ``mpiexec`` would
    end all ranks.
    """
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    if mpi is not None:
        ctypes.CDLL(None).exit(0)
    os._exit(0)


def main() -> None:
    """Run the orders on stdin until stdin ends; a body that reads stdin finds it empty."""
    prepare_process()
    pipe = report_pipe.claim()
    orders = take_stdin()
    if pipe is not None:
        BodyRunner(pipe).serve(orders)
    leave()
