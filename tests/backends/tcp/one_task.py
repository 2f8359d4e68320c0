"""One task of the tcp rendezvous, with the test on the other side."""

import socket
import time

from cobre_comm.backends.tcp.rendezvous.event_loop import Loop

LIMIT_S = 0.3


class Talk:
    """One task; the test is the other side."""

    def __init__(self, converse):
        ours, self.other = socket.socketpair()
        ours.setblocking(False)
        self.other.settimeout(2.0)
        self.result = None
        self._ours, self._loop = ours, Loop()
        self._loop.start(self._run(converse(ours, time.monotonic() + LIMIT_S)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.close()
        self._ours.close()
        self.other.close()

    def _run(self, task):
        try:
            self.result = ((yield from task), None)
        except Exception as error:
            self.result = None, error
        finally:
            self._ours.close()

    def end(self):
        """Return what the task returned, or the error it raised."""
        assert self._loop.run(lambda: self.result is not None, time.monotonic() + LIMIT_S + 1.0)
        value, error = self.result
        return error or value

    def heard(self):
        """Return all that it said before it ended."""
        data = b""
        while piece := self.other.recv(4096):
            data += piece
        return data
