"""A file of shared memory that a rank offers to its peers: how peers find and check the file.

On Linux the file usually has no name, and a peer opens it as ``/proc/PID/fd/N``. In another PID
namespace, or on another machine, this path leads to another file or to none. So a peer looks at the
file to which the path leads before it opens the file, and never opens a device, a FIFO, or a file
of another user. If the system cannot use files without names, the file has a random name.

Sources: open(2) on O_PATH and O_TMPFILE, proc_pid_fd(5), proc(5) on hidepid, pid_namespaces(7).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import struct
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.shm import segment as segments
from cobre_comm.system.descriptor import Descriptor

PROCESSES = pathlib.Path("/proc")
WORD_BYTES = 12
BY_NAME = 0  # in place of a process id: the file is opened by its name
ALONE = -1  # the domain of a rank that offers nothing
_WIRE = struct.Struct(f">qQQQQ{WORD_BYTES}s")


class Offer(NamedTuple):
    """Where the file that a rank offers is; the fields are sent in this order.

    ``word`` is random; if the file has a name, the name is made of ``word``. Ranks of different
    domains do not share memory.
    """

    domain: int = 0
    pid: int = BY_NAME
    number: int = 0  # the number of the file's descriptor in that process
    device: int = 0
    inode: int = 0
    word: bytes = bytes(WORD_BYTES)

    def row(self) -> NDArray[np.uint8]:
        """Return the offer as bytes; all offers have the same length."""
        return np.array(list(_WIRE.pack(*self)), dtype=np.uint8)

    def of(self, file: Descriptor) -> Offer:
        """Return the offer with descriptor, device and inode of a file that this process has."""
        status = os.fstat(file.number)
        return self._replace(number=file.number, device=status.st_dev, inode=status.st_ino)

    @property
    def name(self) -> str:
        """The name of the file, if it has one; short enough for macOS."""
        return f"/cobre.{self.word.hex()}"

    def opened(self) -> Descriptor:
        """Open the file of a peer; ``OSError`` if there is another file in its place, or none."""
        if self.pid == BY_NAME:
            return self._checked(segments.open_named(self.name))
        path = PROCESSES / str(self.pid) / "fd" / str(self.number)
        # With O_PATH the file itself is not opened; the descriptor is only good for looking at the
        # file.
        found = self._checked(Descriptor(os.open, path, os.O_PATH))
        return Descriptor(os.open, f"/proc/self/fd/{found.number}", os.O_RDWR)

    def _checked(self, file: Descriptor) -> Descriptor:
        status = os.fstat(file.number)
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_own or (status.st_dev, status.st_ino) != (self.device, self.inode):
            raise OSError("the number of a process means another process here")
        return file

    def remove_name(self) -> None:
        """Remove the name of the file, if the file has a name and is on this machine."""
        if self.domain != ALONE and self.pid == BY_NAME:
            with contextlib.suppress(OSError):
                segments.unlink(self.name)


NOTHING = Offer(ALONE)


def offer_in(row: NDArray[Any]) -> Offer:
    """Read the offer of a peer."""
    return Offer._make(_WIRE.unpack(row.tobytes()))


def make_nameless() -> Descriptor:
    """Return a new, empty file of shared memory that never has a name."""
    if sys.platform != "linux":
        raise OSError("this system has no files without names")
    flags = os.O_TMPFILE | os.O_RDWR
    file = Descriptor(os.open, segments.SHM_FOLDER, flags, segments.PRIVATE_MODE)
    os.fchmod(file.number, segments.PRIVATE_MODE)  # whatever the umask is
    return file


def make_private() -> Descriptor:
    """Return a new, empty file that has no name and does not count against /dev/shm."""
    if sys.platform != "linux":
        raise OSError("this system has no files without names")
    return Descriptor(os.memfd_create, "cobre_comm")
