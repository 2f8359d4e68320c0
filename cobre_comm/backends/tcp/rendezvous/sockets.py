"""Sockets of this backend: options, listeners, and the limit of open files."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import socket
import sys
from collections.abc import Mapping
from typing import Any

from cobre_comm.backends.tcp.rendezvous.addresses import Endpoint, address_of, resolve, same_host
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.open_files import SPARE_DESCRIPTORS, raise_limit

BACKLOG = 1024  # hundreds of ranks start at once; the system may lower this number
# When a machine has vanished, its links break after 30 + 6 * 10 s: later than the usual timeout of
# a collective, because a network that comes back should find the job alive.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


def prepare(sock: socket.socket, keepalive: Mapping[str, int] = KEEPALIVE) -> socket.socket:
    """Set the options of every link; return the socket."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in keepalive.items():  # macOS names TCP_KEEPIDLE otherwise: TCP_KEEPALIVE
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "SO_NOSIGPIPE"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_NOSIGPIPE, 1)
    return sock


def listen(endpoint: Endpoint) -> socket.socket:
    """Return a socket that listens at an endpoint; at ``::`` it accepts IPv4 too."""
    sock = socket.create_server(
        endpoint.sockaddr,
        family=endpoint.family,
        backlog=BACKLOG,
        # Only on Linux does SO_REUSEADDR alone share a port that a launcher holds reserved.
        reuse_port=sys.platform != "linux" and hasattr(socket, "SO_REUSEPORT"),
        dualstack_ipv6=endpoint.family == socket.AF_INET6 and socket.has_dualstack_ipv6(),
    )
    sock.setblocking(False)
    return sock


def listen_for_workers(host: str, port: int) -> list[socket.socket]:
    """Return the sockets of rank 0, which listen at every address of ``host``.

    An ``InitializationFailed`` names the address, the port, and the variable to change.
    """
    listeners: list[socket.socket] = []
    failure: OSError | None = None
    try:
        for endpoint in resolve(host, port):
            try:
                listeners.append(listen(endpoint))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                failure = error  # some addresses of a name may belong to other machines
    except OSError as error:
        close_all(listeners)
        listeners, failure = [], error
    if not listeners:
        hint = "COBRE_TCP_BIND_ADDR"
        if failure is not None and failure.errno in (errno.EADDRINUSE, errno.EACCES):
            hint = "COBRE_TCP_PORT (cobre-comm run: --coordinator HOST:PORT)"
        raise InitializationFailed(
            "tcp", f"rank 0 cannot listen at {host} port {port}: {failure}; set {hint}"
        )
    return listeners


def listen_at_host(sockaddr: tuple[Any, ...] | None) -> socket.socket:
    """Return a socket that listens at a free port of the host of a socket address.

    If the address is None, the socket listens at every address of this machine.
    """
    if sockaddr is not None:
        return listen(same_host(sockaddr, 0))
    with contextlib.suppress(OSError):  # this machine has no IPv6
        return listen(Endpoint(socket.AF_INET6, ("::", 0)))
    return listen(Endpoint(socket.AF_INET, ("0.0.0.0", 0)))


def is_loopback(listener: socket.socket) -> bool:
    """Whether a listener can be reached from this machine only."""
    return address_of(listener.getsockname()).is_loopback


def close_all(socks: list[socket.socket]) -> None:
    """Close sockets."""
    for sock in socks:
        sock.close()


def reserve_descriptors(links: int, unauthenticated: int, held: int = 0) -> int:
    """Raise the limit of open files for this rank's links and for UNAUTHENTICATED connections.

    ``held`` UNAUTHENTICATED connections are open already. Return how many of these connections the
    limit allows in all.
    """
    needed = _open_files() - held + links + SPARE_DESCRIPTORS
    limit = raise_limit(needed + unauthenticated)
    if limit < needed:
        raise InitializationFailed(
            "tcp",
            f"this rank needs {needed} open files, {links} of them links to other ranks, and the "
            f"limit is {limit}; raise it (ulimit -Hn)",
        )
    return min(unauthenticated, limit - needed + SPARE_DESCRIPTORS // 2)


def has_room(count: int) -> bool:
    """Raise the limit of open files for ``count`` more, if needed; return whether there is room."""
    needed = _open_files() + count + SPARE_DESCRIPTORS
    return raise_limit(needed) >= needed


def _open_files() -> int:
    try:
        return len(list(pathlib.Path("/dev/fd").iterdir()))
    except OSError:  # no /proc: a file opened now gets the lowest number that is free
        with pathlib.Path(os.devnull).open() as file:
            return file.fileno() + 1
