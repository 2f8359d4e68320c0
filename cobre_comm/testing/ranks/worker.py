"""The process of one rank: receives bodies, runs them, reports. Run as a module, not imported."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
NO_COMMUNICATOR = ""


def _picklable(exception: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(exception))
    except Exception:
        return RuntimeError(f"{type(exception).__name__}: {exception}")
    return exception


class Worker:
    """Runs bodies on communicators that it makes from the environment and keeps by key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._communicators: dict[str, Any] = {}

    def serve(self) -> None:
        """Run bodies until the other side closes the connection."""
        while True:
            try:
                task = self._connection.recv_bytes()
            except EOFError:
                break
            self._connection.send_bytes(self._run(task))
        self.close()

    def close(self) -> None:
        """Close the communicators."""
        for comm in self._communicators.values():
            comm.close()

    def _run(self, task: bytes) -> bytes:
        try:
            key, keep, environment, body, args = _unpack(task)
            comm = self._communicator(key, environment)
            try:
                report = ("value", body(comm, *args), "")
            except SystemExit:
                raise  # a body that ends its process means it, and need not close anything
            except BaseException:
                self._give_up(key, keep)
                raise
            self._give_up(key, keep)
            return pickle.dumps(report)
        except SystemExit:
            raise
        except BaseException as exception:
            return pickle.dumps(("exception", _picklable(exception), traceback.format_exc()))

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


def _unpack(task: bytes) -> tuple[Any, ...]:
    path, payload = pickle.loads(task)
    sys.path[:] = path
    return tuple(pickle.loads(payload))


def prepare_process() -> None:
    """Tell where this process is when asked by ``SIGUSR1``, and do not outlive its parent.

    Ctrl-C is heard, too: what a shell starts in the background begins with ``SIGINT`` ignored.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def leave() -> NoReturn:
    """End at once: taking numba and LLVM down in order would cost each rank half a second."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main(fd: int) -> None:
    """Serve on an inherited descriptor."""
    prepare_process()
    Worker(Connection(fd)).serve()
    leave()


if __name__ == "__main__":
    main(int(sys.argv[1]))
