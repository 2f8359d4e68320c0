"""One task of the tcp rendezvous; the test is at the other end of the socket of the task."""

import select
import socket

from cobre_comm.backends.tcp.rendezvous.event_loop import TaskLoop
from cobre_comm.system.running_time import running_s

PATIENCE_S = 20.0  # how long a test waits on a busy machine


class PeerTask:
    """Makes and runs ``task(sock, until)``, where ``until`` is ``limit_s`` from now.

    When the task begins, it finds the bytes ``first`` in its socket.
    """

    def __init__(self, task, limit_s=PATIENCE_S, first=b""):
        self._ours, self.sock = socket.socketpair()
        self._ours.setblocking(False)
        self.sock.settimeout(PATIENCE_S)
        self.sock.sendall(first)
        self.outcome = None
        self._loop = TaskLoop()
        self._loop.start(self._run(task(self._ours, running_s() + limit_s)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.close()
        self._ours.close()
        self.sock.close()

    def _run(self, task):
        try:
            self.outcome = ((yield from task), None)
        except Exception as error:
            self.outcome = None, error
        finally:
            self._ours.close()

    def result(self):
        """Return the value that the task returned, or the error that it raised."""
        assert self._loop.run(lambda: self.outcome is not None, running_s() + PATIENCE_S)
        value, error = self.outcome
        return error or value

    def ends_within(self, seconds):
        """Let the task run for a while; return whether it has ended."""
        return self._loop.run(lambda: self.outcome is not None, running_s() + seconds)

    def send(self, data):
        self.sock.send(data)

    def receive(self):
        """Let the task run until it has sent something; return the bytes that it has sent."""
        until = running_s() + PATIENCE_S
        assert self._loop.run(lambda: bool(select.select([self.sock], [], [], 0)[0]), until)
        return self.sock.recv(1000)

    def rest(self):
        """Return all that an ended task has sent."""
        data = b""
        while piece := self.sock.recv(4096):
            data += piece
        return data

    def dup(self):
        return self._ours.dup()
