"""A file in shared memory that a rank offers to its peers: a peer that can open it shares memory.

On Linux it never has a name, and a peer opens it as ``/proc/PID/fd/N``. It holds a random word: a
number of a process or inode means something else on another machine, the word does not. Elsewhere
its name is random; all ranks remove all such names as soon as all have tried.

A peer's numbers are no more than a guess. The file that they lead to is looked at before it is
opened, through a descriptor that does nothing to it (O_PATH). A device, a FIFO, or a file of
another user is never touched.

Sources: open(2) on O_PATH and O_TMPFILE, proc_pid_fd(5), pid_namespaces(7).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import stat
import struct
from typing import NamedTuple

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.nameless import PROCESSES, make_nameless
from cobre_comm.common.descriptor import Descriptor

WORD_BYTES = 12
BY_NAME = 0  # the process of an offer by name
ALONE = -1  # the domain of a rank that shares no memory
_OFFER = struct.Struct(f">qQQQQ{WORD_BYTES}s")


class Offer(NamedTuple):
    """Where the file of a rank is, in the order of the wire.

    Ranks of different domains are kept apart; a rank whose domain is ALONE offers nothing.
    """

    domain: int
    pid: int = BY_NAME
    number: int = 0  # of its descriptor in that process
    device: int = 0
    inode: int = 0
    word: bytes = bytes(WORD_BYTES)

    def pack(self) -> bytes:
        """Return it as bytes, of the same number for all."""
        return _OFFER.pack(*self)

    @property
    def name(self) -> str:
        """The name of a file that has one; as long as macOS allows."""
        return f"/cobre.{self.word.hex()}"


NOTHING = Offer(ALONE)


def unpack_offer(data: bytes) -> Offer:
    """Read the offer of a peer."""
    return Offer._make(_OFFER.unpack(data))


def make_offer(domain: int) -> tuple[Descriptor, Offer]:
    """Return a new file, and the offer of it; raises OSError if there is no shared memory."""
    word = secrets.token_bytes(WORD_BYTES)
    pid = os.getpid()
    try:
        file = make_nameless()
        os.pwrite(file.number, word, 0)
    except OSError:
        pid = BY_NAME
        file = segments.create_named(Offer(domain, word=word).name)
    status = os.fstat(file.number)
    return file, Offer(domain, pid, file.number, status.st_dev, status.st_ino, word)


def can_open(offer: Offer) -> bool:
    """Tell whether this process can open the file of a peer."""
    try:
        if offer.pid == BY_NAME:
            file = segments.open_named(offer.name)
            return _is_offered(file, offer)
        return _reads_word(offer)
    except OSError:
        return False


def _reads_word(offer: Offer) -> bool:
    path = PROCESSES / str(offer.pid) / "fd" / str(offer.number)
    found = Descriptor(os.open, path, os.O_PATH | os.O_CLOEXEC)
    if not _is_offered(found, offer):
        return False
    itself = pathlib.Path(f"/proc/self/fd/{found.number}")
    file = Descriptor(os.open, itself, os.O_RDONLY | os.O_CLOEXEC)
    return os.pread(file.number, WORD_BYTES, 0) == offer.word


def _is_offered(file: Descriptor, offer: Offer) -> bool:
    """Whether an open file is the one of the offer, and this user's."""
    status = os.fstat(file.number)
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and (status.st_dev, status.st_ino) == (offer.device, offer.inode)
    )


def remove_name(offer: Offer) -> None:
    """Remove the name of an offered file, if it has one and is of this machine."""
    if offer.domain != ALONE and offer.pid == BY_NAME:
        with contextlib.suppress(OSError):
            segments.unlink(offer.name)
