"""Find the nodes: each rank tries to open the shared memory of others. This file knows no socket.

Every rank offers a file in shared memory. When the ranks have exchanged their offers, each tries to
open the files of lower ranks. It joins the lowest rank of which it can open the file. Then the
ranks exchange which rank each has found.

On Linux the file never has a name, and a peer opens it as ``/proc/PID/fd/N``. The file holds a
random word, because the number of a process or an inode means something else on another machine.
Elsewhere the file has a random name; all ranks remove all such names as soon as all have tried.

The numbers of a peer are no more than a guess. A rank looks at the file to which they lead before
it opens the file (``shm/nameless.py``). It never touches a device, a FIFO, or a file of another
user.

Sources: open(2) on O_PATH and O_TMPFILE, proc_pid_fd(5), pid_namespaces(7).
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cobre_comm.backends.agreement import Group, attempt
from cobre_comm.backends.nodes.node_order import NodeOrder, node_order_of
from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.nameless import is_file, make_nameless, open_of
from cobre_comm.system.descriptor import Descriptor

WORD_BYTES = 12
BY_NAME = 0  # the process of an offer by name
ALONE = -1  # the domain of a rank that shares no memory
_OFFER = struct.Struct(f">qQQQQ{WORD_BYTES}s")
_logger = logging.getLogger("cobre_comm")


class Offer(NamedTuple):
    """The place of a rank's file in shared memory, in the order of the wire.

    Ranks of different domains are kept apart; a rank with the domain ALONE offers nothing.
    """

    domain: int
    pid: int = BY_NAME
    number: int = 0  # of its descriptor in that process
    device: int = 0
    inode: int = 0
    word: bytes = bytes(WORD_BYTES)

    def pack(self) -> bytes:
        """Return the offer as bytes; all offers have the same length."""
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
            return is_file(segments.open_named(offer.name), offer.device, offer.inode)
        file = open_of(offer.pid, offer.number, offer.device, offer.inode)
        return os.pread(file.number, WORD_BYTES, 0) == offer.word
    except OSError:
        return False


def remove_name(offer: Offer) -> None:
    """Remove the name of an offered file, if it has one and is of this machine."""
    if offer.domain != ALONE and offer.pid == BY_NAME:
        with contextlib.suppress(OSError):
            segments.unlink(offer.name)


def find_nodes(group: Group, share: bool = True, pretended: Sequence[int] = ()) -> NodeOrder:
    """Find the nodes of all ranks; collective.

    ``share`` says whether this rank shares memory at all. ``pretended`` is for tests: the pretended
    node of each rank, in turn; ranks of different pretended nodes are kept apart.
    """
    rank, offers = group.rank, []
    file, own = _offer(rank, share, pretended)
    try:
        given = group.gather_rows(np.frombuffer(own.pack(), dtype=np.uint8))
        offers = [unpack_offer(row.tobytes()) for row in given]
        lower = (peer for peer in range(rank) if own.domain == offers[peer].domain != ALONE)
        found = next((peer for peer in lower if can_open(offers[peer])), rank)
        leaders = group.gather_rows(np.array([found], dtype=np.uint32))[:, 0].tolist()
    finally:
        for offer in [own, *offers]:
            remove_name(offer)
        if file is not None:
            file.close()
    return node_order_of(confirmed(leaders), rank)


def confirmed(found: Sequence[int]) -> list[int]:
    """Return the leader of every rank, from the rank that each has found.

    A rank stays alone if the rank that it has found has joined a third rank, because not all three
    share memory.
    """
    return [
        leader if leader <= rank and found[leader] == leader else rank
        for rank, leader in enumerate(found)
    ]


def _offer(rank: int, share: bool, pretended: Sequence[int]) -> tuple[Descriptor | None, Offer]:
    if not share:
        return None, NOTHING
    domain = pretended[rank % len(pretended)] if pretended else 0
    made, problem = attempt(lambda: make_offer(domain))
    if made is None:
        _logger.warning("rank %d shares no memory: %s", rank, problem)
        return None, NOTHING
    return made
