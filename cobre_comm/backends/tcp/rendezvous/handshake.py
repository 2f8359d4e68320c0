"""The handshake of every link: before anything else, both ends prove that they know the key.

The accepting end sends CHALLENGE, the connecting end HANDSHAKE, the accepting end ACK or REFUSED.
``protocol.py`` has the states of both ends, and the bytes that a proof covers.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

from cobre_kernels.shm.control import PLACE_BYTES
from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.process import IDENTITY, this_process
from cobre_comm.backends.tcp.rendezvous.event_loop import NEVER, ClosedByPeer, Task, receive, send
from cobre_comm.backends.tcp.rendezvous.messages import (
    LONGEST_REASON,
    pack_frame,
    pack_reason,
    unpack_prefix,
)
from cobre_comm.sources import own_sources

MAGIC = b"cobrecom"
NONCE_BYTES = 32
PROOF_BYTES = 32
LONGEST_HANDSHAKE = 1000  # bytes, in any version of the protocol
BYTE_ORDERS = {0: "little-endian", 1: "big-endian"}
OWN_BYTE_ORDER = int(sys.byteorder == "big")

_CONNECTING, _ACCEPTING, _REFUSING = b"connecting", b"accepting", b"refusing"
_CHALLENGE = struct.Struct(">8sHB32s")  # magic, version, loopback only, nonce
_FIRST_FIELDS = struct.Struct(">IIH")  # rank, size, version
_FIELDS = struct.Struct(f">IIHBBIH{IDENTITY.size}sQ{PLACE_BYTES}s32s")  # the fields of Handshake
_ADMITTED = struct.Struct(f">I{IDENTITY.size}s")  # size, and the process of the accepting end


class AuthenticationFailed(Exception):
    """The other end has sent no valid proof; ``args[0]`` says what was wrong."""


class Refused(Exception):
    """The accepting end has refused a peer with a valid proof; ``args[0]`` says why."""


class Handshake(NamedTuple):
    """What the connecting end sends about itself, in the order in which it is sent."""

    rank: int
    size: int  # the number of ranks, as the connecting end was told
    version: int  # the version of its protocol
    byte_order: int  # 0: little-endian, 1: big-endian
    purpose: int  # the purpose of the link
    target: int  # the rank that the connecting end wants to reach
    port: int  # where it listens for other workers; 0: it does not listen
    process: bytes  # the identity of its process
    sources: int  # the hash of its sources
    place: bytes  # the folder of its sources
    nonce: bytes = b""


def introduce(rank: int, size: int, purpose: int, target: int, port: int = 0) -> Handshake:
    """Return what this process sends about itself."""
    return Handshake(
        rank, size, tags.PROTOCOL_VERSION, OWN_BYTE_ORDER, purpose, target, port, this_process(),
        *own_sources(),
    )  # fmt: skip


def prove(key: bytes, role: bytes, transcript: bytes) -> bytes:
    """Return the HMAC-SHA256 of role and transcript, which only an owner of the key can make."""
    return hmac.digest(key, role + b"\0" + transcript, "sha256")


def _check_proof(proof: bytes, key: bytes, role: bytes, transcript: bytes, trouble: str) -> None:
    if not hmac.compare_digest(proof, prove(key, role, transcript)):
        raise AuthenticationFailed(trouble)


def handshake_as_acceptor(
    sock: socket.socket,
    key_of: Callable[[int], bytes],
    refusal_of: Callable[[Handshake], str | None],
    until: float,
    *,
    loopback_only: bool = False,
) -> Task[Handshake]:
    """Shake hands at the accepting end: from UNAUTHENTICATED to ADMITTED.

    ``key_of`` returns the key for a purpose. ``refusal_of`` returns why a PROVEN peer is refused,
    or None. At ``until`` the accepting end gives up with ``TimeoutError``. The peer is sent
    ``loopback_only``, which says that all ranks are on this machine.
    """
    nonce = secrets.token_bytes(NONCE_BYTES)
    challenge = _CHALLENGE.pack(MAGIC, tags.PROTOCOL_VERSION, loopback_only, nonce)
    yield from send(sock, pack_frame(tags.CHALLENGE, challenge), until)
    fields, proof = yield from _receive_handshake(sock, until)
    handshake = Handshake(*_FIELDS.unpack(fields))
    transcript = challenge + fields
    key = key_of(handshake.purpose)
    _check_proof(proof, key, _CONNECTING, transcript, "could not prove that it knows the token")
    refusal = refusal_of(handshake)
    if refusal is not None:
        reason = pack_reason(refusal)
        answer = prove(key, _REFUSING, transcript + reason) + reason
        yield from send(sock, pack_frame(tags.REFUSED, answer), until)
        raise Refused(refusal)
    # The size is the same at both ends; otherwise the peer would have been refused.
    answer = _ADMITTED.pack(handshake.size, this_process())
    proof = prove(key, _ACCEPTING, transcript + answer)
    yield from send(sock, pack_frame(tags.ACK, answer + proof), until)
    return handshake


def _receive_handshake(sock: socket.socket, until: float) -> Task[tuple[bytes, bytes]]:
    """Receive fields and proof; stop at the first byte that cannot belong to a handshake."""
    length, tag = unpack_prefix((yield from receive(sock, tags.PREFIX_BYTES, until)))
    if tag != tags.HANDSHAKE or not _FIRST_FIELDS.size <= length <= LONGEST_HANDSHAKE:
        raise AuthenticationFailed("sent something that is not a handshake")
    first = yield from receive(sock, _FIRST_FIELDS.size, until)
    if length != _FIELDS.size + PROOF_BYTES:
        version = _FIRST_FIELDS.unpack(first)[2]
        if version == tags.PROTOCOL_VERSION:
            raise AuthenticationFailed("sent something that is not a handshake")
        raise AuthenticationFailed(other_version(version))
    rest = yield from receive(sock, length - len(first), until)
    fields = first + rest
    return fields[: _FIELDS.size], fields[_FIELDS.size :]


def other_version(version: int) -> str:
    """Return the sentence that the other end speaks another version of the protocol."""
    return (
        f"speaks protocol version {version}, this cobre_comm speaks {tags.PROTOCOL_VERSION}; "
        f"use one version for all ranks"
    )


def handshake_as_connector(
    sock: socket.socket, describe: Callable[[bool], Handshake], key: bytes, until: float
) -> Task[bytes]:
    """Shake hands at the connecting end, from CONNECTED to ADMITTED; return the peer's process.

    ``describe`` returns the fields, given whether all ranks are on this machine. CHALLENGE must
    arrive before ``until``. The wait for the answer has no limit: the other end may have admitted
    this rank already, so this rank must not leave.
    """
    challenge, version = yield from _receive_challenge(sock, until)
    loopback_only = bool(_CHALLENGE.unpack(challenge)[2])
    own_nonce = secrets.token_bytes(NONCE_BYTES)
    fields = _FIELDS.pack(*describe(loopback_only)._replace(nonce=own_nonce))
    transcript = challenge + fields
    proof = prove(key, _CONNECTING, transcript)
    try:
        yield from send(sock, pack_frame(tags.HANDSHAKE, fields + proof))
        return (yield from _receive_answer(sock, key, transcript))
    except (ConnectionResetError, BrokenPipeError, ClosedByPeer):
        if version != tags.PROTOCOL_VERSION:
            raise AuthenticationFailed(other_version(version)) from None
        raise AuthenticationFailed(
            "closed the connection at the handshake; its token may be another one (COBRE_TCP_TOKEN)"
        ) from None


def _receive_challenge(sock: socket.socket, until: float) -> Task[tuple[bytes, int]]:
    length, tag = unpack_prefix((yield from receive(sock, tags.PREFIX_BYTES, until)))
    if tag != tags.CHALLENGE or length != _CHALLENGE.size:
        raise AuthenticationFailed("is not a rank of cobre_comm")
    challenge = yield from receive(sock, length, until)
    magic, version, _, _ = _CHALLENGE.unpack(challenge)
    if magic != MAGIC:
        raise AuthenticationFailed("is not a rank of cobre_comm")
    return challenge, version


def _receive_answer(sock: socket.socket, key: bytes, transcript: bytes) -> Task[bytes]:
    trouble = "could not prove that it knows the token (COBRE_TCP_TOKEN)"
    length, tag = unpack_prefix((yield from receive(sock, tags.PREFIX_BYTES, NEVER)))
    if tag == tags.ACK and length == _ADMITTED.size + PROOF_BYTES:
        answer = yield from receive(sock, _ADMITTED.size, NEVER)
        proof = yield from receive(sock, PROOF_BYTES, NEVER)
        _check_proof(proof, key, _ACCEPTING, transcript + answer, trouble)
        return bytes(_ADMITTED.unpack(answer)[1])
    if tag == tags.REFUSED and PROOF_BYTES <= length <= PROOF_BYTES + LONGEST_REASON:
        answer = yield from receive(sock, length, NEVER)
        proof, reason = answer[:PROOF_BYTES], answer[PROOF_BYTES:]
        _check_proof(proof, key, _REFUSING, transcript + reason, trouble)
        raise Refused(reason.decode(errors="replace"))
    raise AuthenticationFailed("sent something that is not an answer to a handshake")
