"""The identity of a peer's process, and a descriptor that shows when the process has ended.

The system ends the streams of a dead process only when no other process holds its sockets. A forked
child holds the sockets of its parent. A hook (:func:`os.register_at_fork`) closes these sockets in
the child, but does not run if a C library has forked. So a rank also watches the processes of peers
that are on its machine and in its PID namespace.

Sources: pidfd_open(2), since Linux 5.3; proc_pid_stat(5) on ``starttime``; pid_namespaces(7).
"""

from __future__ import annotations

import functools
import os
import pathlib
import socket
import struct

from cobre_comm.system.start_time import UNKNOWN, start_time

MACHINE_BYTES = 32
IDENTITY = struct.Struct(f">{MACHINE_BYTES}sQIQ")  # machine, PID namespace, PID, start time
_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def this_machine() -> bytes:
    """Return bytes that are the same for all processes of this machine."""
    try:
        identity = _BOOT_ID.read_text()
    except OSError:
        identity = socket.gethostname()
    from cobre_kernels.machine.version import blake2b

    return bytes(blake2b(identity.encode(), digest_size=MACHINE_BYTES).digest())


def this_process() -> bytes:
    """Return the identity of this process, by which its peers can watch it."""
    pid = os.getpid()
    return IDENTITY.pack(this_machine(), _namespace(), pid, start_time(pid))


def machine_of(identity: bytes) -> bytes:
    """Return the machine of a process."""
    return identity[:MACHINE_BYTES]


def pid_of(identity: bytes) -> int:
    """Return the process id of a process, in its own PID namespace."""
    return int(IDENTITY.unpack(identity)[2])


def watch(identity: bytes) -> int | None:
    """Return a descriptor that is readable when a process has ended; None if none can be made."""
    machine, namespace, pid, started = IDENTITY.unpack(identity)
    if machine != this_machine() or namespace != _namespace() or UNKNOWN in (namespace, started):
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError, OverflowError):  # another system, an old Linux, or a sandbox
        return None
    if start_time(pid) != started:  # by now, or on this machine, another process has the PID
        os.close(descriptor)
        return None
    return descriptor


def _namespace() -> int:
    try:
        return pathlib.Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return UNKNOWN
