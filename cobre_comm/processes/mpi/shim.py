"""The program that ``mpiexec`` starts in place of a rank: it has the launcher start the rank.

Run by path, isolated (``python -I -S shim.py NAME LAUNCHER``), by ``mpiexec``. It connects to
the launcher's socket, says which rank it is, and gets an order: the command, and the descriptors of
input and output. The rank has the environment and descriptors that ``mpiexec`` gave, but is a child
of the launcher: its parent here ends at once, and the launcher adopts orphans
(PR_SET_CHILD_SUBREAPER of prctl(2)). So the launcher, not ``mpiexec``, sees how the rank ends,
and decides which signals the rank gets.

The shim ends when the launcher says so or is gone; until then ``mpiexec`` believes that the rank
runs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from typing import Any, NoReturn

# By which MPI's launchers tell a process its rank.
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
REPORT_VARIABLE = "COBRE_REPORT_PIPE"  # as report_pipe.VARIABLE, which a shim cannot import
HEADER = struct.Struct("!Q")  # length of the order that follows
_IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def connect(name: str, launcher: int) -> socket.socket:
    """Connect to the launcher; exit if another process answers, or one in another PID namespace."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(f"\0{name}")
    peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, user, _ = struct.unpack("3i", peer)
    if pid == 0:
        sys.exit(
            "cobre-comm: the launcher has process numbers of another namespace than this rank, "
            "which can be no child of it; start both in one container"
        )
    if (pid, user) != (launcher, os.getuid()):
        sys.exit(f"cobre-comm: another process ({pid}) answers in place of the launcher")
    return link


def announced_rank() -> str:
    """Return the rank that ``mpiexec`` gave to this process."""
    for name in RANK_VARIABLES:
        if name in os.environ:
            return os.environ[name]
    sys.exit(f"cobre-comm: mpiexec has set none of {', '.join(RANK_VARIABLES)}")


def receive_order(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the order, and the rank's stdin, stdout, stderr and report pipe."""
    header, descriptors, _, _ = socket.recv_fds(link, HEADER.size, 4)
    if len(header) < HEADER.size:
        os._exit(1)  # the job ends before this rank begins
    (length,) = HEADER.unpack(header)
    with link.makefile("rb") as stream:
        return json.loads(stream.read(length)), descriptors


def begin(order: dict[str, Any], descriptors: list[int], link: socket.socket) -> None:
    """Fork an orphan, which the launcher adopts, and let it become the rank."""
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        if os.fork() != 0:
            os._exit(0)
        os.close(writer)
        os.read(reader, 1)  # ends when the parent has been reaped: this is an orphan from then on
        os.close(reader)
        become(order, descriptors, link)
    os.close(reader)
    os.waitpid(parent, 0)
    os.close(writer)


def become(order: dict[str, Any], descriptors: list[int], link: socket.socket) -> NoReturn:
    """Turn this process into the rank; tell the launcher its number just before."""
    try:
        os.setsid()
        *standard, report_pipe = descriptors
        for target, descriptor in enumerate(standard):
            os.dup2(descriptor, target)
            os.close(descriptor)
        link.sendall(f"{os.getpid()}\n".encode())
        command = order["command"]
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN if number in order["ignored"] else signal.SIG_DFL)
        os.set_inheritable(report_pipe, True)
        pipe = {REPORT_VARIABLE: f"{report_pipe}:{os.fstat(report_pipe).st_ino}"}
        os.execve(command[0], command, {**os.environ, **order["environment"], **pipe})
    except BaseException as error:
        os.write(2, f"cobre-comm: cannot start the rank: {error!r}\n".encode())
    os._exit(127)


def main() -> None:
    """Announce the rank, take the order, start the rank, and wait for the launcher."""
    name, launcher = sys.argv[1], int(sys.argv[2])
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)  # mpiexec may end the rank by way of the launcher
    link = connect(name, launcher)
    link.sendall(f"{announced_rank()} {os.getppid()}\n".encode())
    order, descriptors = receive_order(link)
    begin(order, descriptors, link)
    for descriptor in descriptors:
        os.close(descriptor)
    os._exit(0 if link.recv(1) else 1)


if __name__ == "__main__":
    main()
