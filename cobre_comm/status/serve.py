"""``cobre-comm status --serve``: a page in a browser of this machine that shows the jobs live.

The server listens on loopback alone. Other users of the machine can reach loopback too, so the
server answers only below a path of 128 random bits, which it prints for the user who has started
it. In a browser of this machine, a page of another site may also send requests, under a name that
leads to loopback (DNS rebinding). Such requests carry that name as their ``Host``, and are refused.
The page of this server loads nothing from other servers, and its policy forbids that. Whoever
connects can neither make the server print, nor keep other clients out: if there are too many
connections, the oldest connection ends.

Sources: RFC 9110, section 7.2, on ``Host``; W3C, Content Security Policy Level 3.
"""

from __future__ import annotations

import contextlib
import hmac
import importlib.resources
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.1"
_NAMES = (ADDRESS, "localhost")  # with any port, because an ssh tunnel may use another port
_LOOK_S = 0.5  # the least time between two looks, even for several pages or a hasty client
_PATIENCE_S = 10.0  # for a client that sends nothing
_MOST_CLIENTS = 64  # at the same time, because each takes a descriptor and a thread
_PAUSE_S = 0.1  # the pause until a descriptor may be free again
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Server(ThreadingHTTPServer):
    """Serves the page, and the data that it shows.

    The server listens at ``port``; 0 stands for any free port. ``look`` returns the data.
    """

    daemon_threads = True

    def __init__(self, port: int, look: Callable[[], dict[str, Any]]) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.path = f"/{secrets.token_urlsafe(16)}/"
        self.url = f"http://{ADDRESS}:{self.server_port}{self.path}"
        page = importlib.resources.files("cobre_comm.status").joinpath("page.html")
        self._page = page.read_bytes()
        self._look, self._looks = look, threading.Lock()
        self._lock = threading.Lock()  # protects _clients
        self._seen, self._seen_at = b"", -_LOOK_S
        self._clients: dict[socket.socket, None] = {}  # the oldest client comes first

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take the next client; if there are too many, end the connection of the oldest."""
        try:
            request, address = super().get_request()
        except OSError:  # no descriptor is left, so the client stays in the queue
            self._drop_oldest()
            time.sleep(_PAUSE_S)
            raise
        with self._lock:
            self._clients[request] = None
            is_full = len(self._clients) > _MOST_CLIENTS
        if is_full:
            self._drop_oldest()
        return request, address

    def _drop_oldest(self) -> None:
        """End the connection of the oldest client, which has had enough time to get an answer."""
        with self._lock:
            oldest = [*self._clients][:1]
            for client in oldest:
                del self._clients[client]
        for client in oldest:
            with contextlib.suppress(OSError):  # the connection has ended meanwhile
                client.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """End the connection of a client."""
        with self._lock:
            self._clients.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing, because any user of the machine can break a connection."""

    def content(self, path: str) -> tuple[str, bytes] | None:
        """Return type and content for a path; None for a path without content."""
        if _same(path, self.path):
            return "text/html; charset=utf-8", self._page
        if _same(path, f"{self.path}jobs.json"):
            return "application/json", self._jobs()
        return None

    def _jobs(self) -> bytes:
        with self._looks:
            if time.monotonic() - self._seen_at >= _LOOK_S:
                self._seen = json.dumps(self._look(), allow_nan=False).encode()
                self._seen_at = time.monotonic()
            return self._seen


def _same(asked: str, path: str) -> bool:
    """Compare two paths in a time that does not reveal how much of them is the same."""
    return hmac.compare_digest(asked.encode(), path.encode())


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE_S
    server_version, sys_version = "cobre-comm", ""

    def do_GET(self) -> None:
        """Answer with the page, with its data, or with an error."""
        if self.headers.get("Host", "").partition(":")[0] not in _NAMES:
            self.send_error(403, "this page is for a browser of this machine")
            return
        try:
            found = self.server.content(self.path)
        except Exception as error:
            self.send_error(500, explain=f"{type(error).__name__}: {error}")
            return
        if found is None:
            self.send_error(404)
            return
        kind, content = found
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing: a line for each request would fill the terminal, and show the path."""
