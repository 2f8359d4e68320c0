"""Reserves a free port for rank 0 of a job on this machine, without a race."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.contract.closing import Closing
from cobre_comm.processes.job import Job

LOOPBACK = "127.0.0.1"


class ReservedPort(Closing):
    """A port that no other program gets by chance while this object is open.

    A socket is bound to the port and never listens. At the bind the socket has no SO_REUSEADDR, so
    the bind succeeds only if the port is free. The kernel gives a bound port neither to a bind of
    port 0 nor to an outgoing connection. After the bind the socket gets SO_REUSEADDR. So rank 0,
    which sets SO_REUSEADDR too, can bind the same port and listen. Source: socket(7);
    ``inet_csk_get_port`` in Linux.

    Other systems have other rules. On them the object only finds a free port, and closes its socket
    at once.
    """

    def __init__(self, host: str = LOOPBACK) -> None:
        self._socket = socket.socket()  # the ranks do not inherit it
        try:
            self._socket.bind((host, 0))
            self.port: int = self._socket.getsockname()[1]
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except OSError as error:
            self.close()
            why = f"{error.strerror} (a port of {host}, where the ranks of this machine meet; "
            raise OSError(error.errno, f"{why}is its loopback interface up?)") from None
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


@contextlib.contextmanager
def with_rendezvous(job: Job) -> Iterator[Job]:
    """Reserve a port of this machine for a job over sockets, unless it has a rendezvous already."""
    if job.backend != "tcp" or job.rendezvous is not None:
        yield job
        return
    with ReservedPort() as reserved:
        yield replace(job, rendezvous=Rendezvous(LOOPBACK, reserved.port, LOOPBACK))
