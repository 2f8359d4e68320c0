"""The PEERS frame: what rank 0 tells a worker when all have come."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.addresses import (
    Address,
    Endpoint,
    pack_address,
    same_host,
    unpack_endpoint,
)
from cobre_comm.backends.tcp.rendezvous.frames import pack_frame

SECRET_BYTES = 16
_HEAD = struct.Struct(">QIQ16s")  # star_bytes, ranks on that machine, patience_ms, job secret
_ENTRY = struct.Struct(">B16sH")  # family, address, port


@dataclass(frozen=True)
class Peers:
    """What a worker must know about the others.

    Parameters
    ----------
    star_bytes : int
        Rank 0's value.
    ranks_here : int
        How many ranks run on the worker's machine.
    patience_ms : int
        How long the worker may take to open and accept its links; 0: no limit.
    secret : bytes
        Random; part of the key of all further handshakes.
    endpoints : sequence of Endpoint
        Where every rank listens.
    """

    star_bytes: int
    ranks_here: int
    patience_ms: int
    secret: bytes
    endpoints: Sequence[Endpoint]


def pack_peers(
    star_bytes: int,
    ranks_here: int,
    patience_ms: int,
    secret: bytes,
    listeners: Sequence[tuple[Address | None, int]],
) -> bytes:
    """Return the frame; ``listeners`` are address and port of the ranks 1, 2, ..."""
    entries = (_ENTRY.pack(*pack_address(address), port) for address, port in listeners)
    head = _HEAD.pack(star_bytes, ranks_here, patience_ms, secret)
    return pack_frame(tags.PEERS, head + b"".join(entries))


def peers_bytes(size: int) -> int:
    """Return the length of the payload for that many ranks."""
    return _HEAD.size + (size - 1) * _ENTRY.size


def unpack_peers(payload: bytes, rank_0: tuple[Any, ...]) -> Peers:
    """Read the payload, for a worker that reached rank 0 at that socket address."""
    star_bytes, ranks_here, patience_ms, secret = _HEAD.unpack_from(payload)
    endpoints = [same_host(rank_0, rank_0[1])]
    for family, packed, port in _ENTRY.iter_unpack(payload[_HEAD.size :]):
        endpoints.append(unpack_endpoint(family, packed, port, rank_0))
    return Peers(star_bytes, ranks_here, patience_ms, secret, endpoints)
