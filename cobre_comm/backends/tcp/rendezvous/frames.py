"""A frame: u32 big-endian length of what follows, u8 tag, payload."""

from __future__ import annotations

import contextlib
import socket
import struct

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.event_loop import Task, receive
from cobre_comm.errors import InitializationFailed

LONGEST_REASON = 1000  # bytes
LOST = "ended before all ranks had attached"
_PREFIX = struct.Struct(">IB")
_NONE = -1  # no frame has this tag


def pack_frame(tag: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return _PREFIX.pack(tags.TAG_BYTES + len(payload), tag) + payload


def unpack_prefix(prefix: bytes) -> tuple[int, int]:
    """Return the length of the payload, and the tag; the length may be any, also -1."""
    length, tag = _PREFIX.unpack(prefix)
    return length - tags.TAG_BYTES, tag


def lost(rank: int, reason: str = "") -> InitializationFailed:
    """Make the error of a rank that is gone, or of what it said when it went."""
    if LOST in reason:
        return InitializationFailed("tcp", reason)
    return InitializationFailed("tcp", f"rank {rank} {LOST}" + (f": {reason}" if reason else ""))


def pack_reason(reason: str) -> bytes:
    """Return a sentence as bytes that fit into a frame."""
    return reason.encode(errors="replace")[:LONGEST_REASON]


def send_refused(sock: socket.socket, error: InitializationFailed) -> None:
    """Tell an attached rank why this one gives up, if it can be told."""
    with contextlib.suppress(OSError):
        sock.send(pack_frame(tags.REFUSED, pack_reason(str(error.source))))


def receive_frame(sock: socket.socket, rank: int, tag: int, count: int = 0) -> Task[bytes]:
    """Receive a frame of that tag and length from an attached rank.

    Raises
    ------
    InitializationFailed
        If the rank is gone, gives up and says why, or sends another frame.
    """
    try:
        length, seen = unpack_prefix((yield from receive(sock, tags.PREFIX_BYTES)))
        if (seen, length) == (tag, count):
            return (yield from receive(sock, count))
        if seen == tags.REFUSED and 0 <= length <= LONGEST_REASON:
            reason = yield from receive(sock, length)
            raise lost(rank, reason.decode(errors="replace"))
    except OSError as error:
        raise lost(rank) from error
    raise InitializationFailed(
        "tcp", f"rank {rank} sent frame {seen:#x} of {length} bytes out of turn"
    )


def watch(sock: socket.socket, rank: int) -> Task[None]:
    """Notice that an attached rank is gone or gives up, while it has nothing else to say."""
    yield from receive_frame(sock, rank, _NONE)
