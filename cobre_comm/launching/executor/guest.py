"""The task that a worker of an executor runs: be a rank, and leave the worker as it was."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from cobre_comm.backends.tcp.backend import TcpBackend
from cobre_comm.backends.tcp.process import this_process
from cobre_comm.config import TcpConfig
from cobre_comm.launching.executor.invitation import Go, GuestConnection, Hello, Invitation, connect
from cobre_comm.launching.pickling import dumps
from cobre_comm.launching.replies import Failed, ProgressReport, value_message
from cobre_comm.launching.reporting import as_rank, is_rank
from cobre_comm.processes.port import ReservedPort
from cobre_comm.system.in_turn import InTurn


def run_rank(invitation: Invitation, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Be one rank of a launch; its progress and outcome go to the launcher by a connection."""
    if is_rank():
        raise RuntimeError("this worker is a rank of another launch; ranks need a process each")
    with connect(invitation) as connection, ReservedPort("0.0.0.0") as reserved:
        hello = Hello(invitation.rank, this_process(), reserved.port)
        connection.send_bytes(pickle.dumps(hello))
        try:
            told = connection.recv()
        except (EOFError, OSError):
            return  # not all workers have arrived
        if isinstance(told, Go):
            send = InTurn(connection.send_bytes)  # a long message is two writes
            send(_outcome(connection, send, invitation, told, fn, args))


def _outcome(
    connection: GuestConnection,
    send: InTurn,
    invitation: Invitation,
    told: Go,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
) -> bytes:
    """Call the function as a rank; return the message with its outcome, ``Done`` or ``Failed``."""

    def reporter(payload: Any) -> None:
        if invitation.wants_progress:
            send(dumps(ProgressReport(payload)))

    interruption = _Interruption(connection)
    try:
        try:
            with (
                as_rank(reporter),
                TcpBackend(TcpConfig.from_env(os.environ | told.variables)) as comm,
            ):
                start = time.perf_counter()
                value = fn(comm, *args)
                done = value_message(comm, value, time.perf_counter() - start)
        finally:
            interruption.end()
    except BaseException as error:  # the worker continues with other tasks
        return pickle.dumps(Failed.of(error))
    return done


class _Interruption:
    """Raises KeyboardInterrupt in the thread of the task when the launcher ends the rank."""

    def __init__(self, connection: GuestConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._task = threading.get_ident()
        self._active = True
        self._thread = threading.Thread(target=self._listen, daemon=True, name="cobre-interruption")
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            self._connection.recv_bytes()  # the launcher says nothing more than that it ends
        with self._lock:
            if self._active:
                self._interrupt()

    def _interrupt(self) -> None:
        takes_signals = callable(signal.getsignal(signal.SIGINT))
        if self._task == threading.main_thread().ident and takes_signals:
            signal.pthread_kill(self._task, signal.SIGINT)  # also ends a sleep
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._task), ctypes.py_object(KeyboardInterrupt)
            )

    def end(self) -> None:
        """Stop listening, so that nothing interrupts the worker from now on."""
        with self._lock:
            self._active = False
        self._connection.hang_up(socket.SHUT_RD)
        self._thread.join()
