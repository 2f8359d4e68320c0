"""The program that ``mpiexec`` starts in place of a rank: it makes the launcher start the rank.

``mpiexec`` runs this file by its path, isolated (``python -I -S shim.py NAME LAUNCHER``). The shim
connects to the launcher's socket, and sends what ``mpiexec`` gives to a rank: the number of the
rank, the environment, and, if there is such a descriptor, the connection to ``mpiexec``. With these
the launcher starts the rank as its own child. So the launcher, not ``mpiexec``, sees how the rank
ends, and decides which signals the rank gets.

The shim ends when the launcher tells it to, or when the launcher has ended; until then ``mpiexec``
believes that the shim is the rank.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import struct
import sys

# Variables by which launchers of MPI tell a process its rank.
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
DESCRIPTOR_VARIABLE = "PMI_FD"  # in which Hydra (MPICH, Intel MPI) gives the number of a descriptor


def connect(name: str, launcher: int) -> socket.socket:
    """Connect to the launcher; exit if another process, or another PID namespace, has answered."""
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


def main() -> None:
    """Send the rank, with what ``mpiexec`` has given to it, to the launcher; wait for an answer."""
    name, launcher, *forwarded = sys.argv[1:]
    # The launcher sends these signals to the rank. They must not end the shim, because the launcher
    # takes the end of a shim for an end of the job by mpiexec.
    for number in map(int, forwarded):
        signal.signal(number, signal.SIG_IGN)
    link = connect(name, int(launcher))
    line = f"{announced_rank()} {os.getppid()}".encode()
    descriptor = os.environ.get(DESCRIPTOR_VARIABLE)
    # A file in memory can hold an environment of any size, and its reader never waits for bytes.
    with open(os.memfd_create("environment"), "wb") as environment:  # noqa: PTH123
        environment.write(marshal.dumps(dict(os.environ)))
        environment.flush()
        given = [environment.fileno(), *([int(descriptor)] if descriptor else [])]
        socket.send_fds(link, [line], given)
    os._exit(0 if link.recv(1) else 1)


if __name__ == "__main__":
    main()
