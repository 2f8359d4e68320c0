"""Messages of the rendezvous: frames, the sentence of REFUSED, and the facts of JOB and PEERS."""

from __future__ import annotations

import contextlib
import socket
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.addresses import (
    Address,
    Endpoint,
    pack_address,
    unpack_endpoint,
)
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, receive
from cobre_comm.errors import InitializationFailed

LONGEST_REASON = 1000  # bytes
LOST = "ended before all ranks had attached"
SECRET_BYTES = 16
_PREFIX = struct.Struct(">IB")
_CHECKSUM = struct.Struct(">I")
_JOB = struct.Struct(">QI16s")  # eager_bytes, ranks on the worker's machine, secret
_LIMIT = struct.Struct(">Q")  # link_timeout_ms
_ENTRY = struct.Struct(">B16sH")  # family, address, port
ANSWER_HEAD = struct.Struct(">Ii")  # number of the call; chair of the roll that the member holds
ROLL_ENTRY = struct.Struct(">I")  # a rank that has answered; the row of that rank follows
LONGEST_PART = 1024  # the most bytes that one rank gives in an exchange


def pack_frame(tag: int, payload: bytes) -> bytes:
    """Return the bytes of a frame."""
    return _PREFIX.pack(tags.TAG_BYTES + len(payload), tag) + payload


def pack_checked(tag: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame that has a checksum behind its payload.

    Numbers in the payload choose ranks, lengths and ports, so the receiver has to notice a bit that
    the network has flipped.
    """
    return pack_frame(tag, payload + _checksum(tag, payload))


def _checksum(tag: int, payload: bytes) -> bytes:
    return _CHECKSUM.pack(zlib.crc32(payload, tag))


def unpack_prefix(prefix: bytes) -> tuple[int, int]:
    """Return the length of the payload, and the tag; the length is not checked, and may be -1."""
    length, tag = _PREFIX.unpack(prefix)
    return length - tags.TAG_BYTES, tag


class Expected(NamedTuple):
    """A frame that has to arrive next: its tag, and the least and most bytes of its payload."""

    tag: int
    least: int
    most: int


JOB = Expected(tags.JOB, _JOB.size, _JOB.size)
PART = Expected(tags.PART, 0, LONGEST_PART)
HELD = Expected(tags.HELD, 0, 0)
DECIDED = Expected(tags.DECIDED, 1, 1)  # whether a rank was unreachable
_NOTHING = Expected(-1, 0, 0)


def peers(count: int) -> Expected:
    """Return the PEERS frame for this many leaders; rank 0 is not counted."""
    nbytes = _LIMIT.size + count * _ENTRY.size
    return Expected(tags.PEERS, nbytes, nbytes)


def roll(size: int) -> Expected:
    """Return the frame of a roll, for this number of ranks (``tcp/council.py``)."""
    return Expected(tags.ROLL, 1, _longest_roll(size))


def answer(size: int) -> Expected:
    """Return the frame of an answer to a call; the answer may contain a roll."""
    return Expected(tags.ANSWER, ANSWER_HEAD.size, ANSWER_HEAD.size + _longest_roll(size))


def _longest_roll(size: int) -> int:
    return 1 + size * (ROLL_ENTRY.size + LONGEST_PART)


def receive_frame(sock: socket.socket, rank: int, expected: Expected) -> Task[bytes]:
    """Receive a frame from an attached rank.

    ``InitializationFailed`` is raised if the rank is lost, or if it sends REFUSED, another frame,
    or a frame that was changed on its way.
    """
    try:
        length, seen = unpack_prefix((yield from receive(sock, tags.PREFIX_BYTES)))
        length -= _CHECKSUM.size
        is_expected = seen == expected.tag and expected.least <= length <= expected.most
        if is_expected or (seen == tags.REFUSED and 0 <= length <= LONGEST_REASON):
            payload = yield from receive(sock, length)
            checksum = yield from receive(sock, _CHECKSUM.size)
            if checksum != _checksum(seen, payload):
                raise InitializationFailed(
                    "tcp", f"a frame of rank {rank} has changed on its way; is the network faulty?"
                )
            if is_expected:
                return payload
            raise lost(rank, payload.decode(errors="replace"))
    except OSError as error:
        raise lost(rank) from error
    raise InitializationFailed(
        "tcp", f"rank {rank} sent frame {seen:#x} of {length} bytes out of turn"
    )


def watch(sock: socket.socket, rank: int) -> Task[None]:
    """Watch the link of an attached rank that is to send nothing; raise when the rank is lost."""
    yield from receive_frame(sock, rank, _NOTHING)


def lost(rank: int, reason: str = "") -> InitializationFailed:
    """Return the error of a lost rank, with the reason that the rank gave, if any."""
    if LOST in reason:
        return InitializationFailed("tcp", reason, [rank])
    text = f"rank {rank} {LOST}" + (f": {reason}" if reason else "")
    return InitializationFailed("tcp", text, [rank])


def peer_of(sock: socket.socket, rank: int) -> tuple[Any, ...]:
    """Return the socket address of an attached rank, from its link; raise if the rank has ended."""
    try:
        peer: tuple[Any, ...] = sock.getpeername()
    except OSError as error:
        raise lost(rank) from error
    return peer


def pack_reason(reason: str) -> bytes:
    """Return a sentence as bytes that fit into a frame."""
    return reason.encode(errors="replace")[:LONGEST_REASON]


def send_refused(sock: socket.socket, error: InitializationFailed) -> None:
    """Send an attached rank the reason why this rank gives up, if their link still works."""
    with contextlib.suppress(OSError):
        sock.send(pack_checked(tags.REFUSED, pack_reason(str(error.source))))


class JobMessage(NamedTuple):
    """The facts that a worker must know about the job."""

    eager_bytes: int  # the value that rank 0 has chosen
    ranks_here: int  # how many ranks run on the worker's machine
    secret: bytes  # random; part of the key of all further handshakes

    def pack(self) -> bytes:
        """Return the JOB frame."""
        return pack_checked(tags.JOB, _JOB.pack(*self))


def unpack_job(payload: bytes) -> JobMessage:
    """Read the payload of JOB."""
    return JobMessage._make(_JOB.unpack(payload))


def pack_peers(link_timeout_ms: int, listeners: Sequence[tuple[Address | None, int]]) -> bytes:
    """Return the PEERS frame.

    The worker has ``link_timeout_ms`` to open and accept its links; 0 means no limit. The listeners
    are those of all leaders but rank 0, in the order of their ranks.
    """
    entries = (_ENTRY.pack(*pack_address(address), port) for address, port in listeners)
    return pack_checked(tags.PEERS, _LIMIT.pack(link_timeout_ms) + b"".join(entries))


def unpack_peers(payload: bytes, rank_0: tuple[Any, ...]) -> tuple[int, list[Endpoint]]:
    """Return the limit and the endpoints in PEERS; this worker reached rank 0 at ``rank_0``."""
    [link_timeout_ms] = _LIMIT.unpack_from(payload)
    entries = _ENTRY.iter_unpack(payload[_LIMIT.size :])
    return link_timeout_ms, [
        unpack_endpoint(family, packed, port, rank_0) for family, packed, port in entries
    ]
