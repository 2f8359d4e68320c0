"""Addresses: functions that resolve, compare and pack them, and show them in sentences."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, NamedTuple, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_IPV4, _IPV6 = 4, 6
_SAME_AS_RANK_0 = 0
WIRE_BYTES = 16


class Endpoint(NamedTuple):
    """An address to connect to, or to listen at, in the form that the socket module takes."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.sockaddr[0]} port {self.sockaddr[1]}"


def resolve(host: str, port: int) -> list[Endpoint]:
    """Return the endpoints of a host name or address, each once; ``OSError`` if there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(f"{host!r} is not a host name") from None
    of_ip = (row for row in found if row[0] in (socket.AF_INET, socket.AF_INET6))
    return list(dict.fromkeys(Endpoint(family, sockaddr) for family, *_, sockaddr in of_ip))


def address_of(sockaddr: tuple[Any, ...]) -> Address:
    """Return the IP address of a socket address; an IPv4-mapped IPv6 address becomes IPv4."""
    if len(sockaddr) == 2:
        return ipaddress.IPv4Address(sockaddr[0])
    address = ipaddress.IPv6Address(sockaddr[0])
    return address.ipv4_mapped or address


def pack_address(address: Address | None) -> tuple[int, bytes]:
    """Return the family and 16 bytes of an address; None stands for the host of rank 0."""
    if address is None:
        return _SAME_AS_RANK_0, bytes(WIRE_BYTES)
    return address.version, address.packed.ljust(WIRE_BYTES, b"\0")


def unpack_endpoint(family: int, packed: bytes, port: int, rank_0: tuple[Any, ...]) -> Endpoint:
    """Return the endpoint at which a rank listens, for a process that reached rank 0 at ``rank_0``.

    The scope of a link-local address is valid on one machine only. So the endpoint gets the scope
    of the interface by which this process reached rank 0.
    """
    if family == _IPV4:
        return Endpoint(socket.AF_INET, (socket.inet_ntop(socket.AF_INET, packed[:4]), port))
    if family == _IPV6:
        host = socket.inet_ntop(socket.AF_INET6, packed)
        scoped = ipaddress.IPv6Address(packed).is_link_local and len(rank_0) == 4
        return Endpoint(socket.AF_INET6, (host, port, 0, rank_0[3] if scoped else 0))
    return same_host(rank_0, port)


def same_host(sockaddr: tuple[Any, ...], port: int) -> Endpoint:
    """Return the endpoint of a port on the host of a socket address."""
    family = socket.AF_INET6 if len(sockaddr) == 4 else socket.AF_INET
    return Endpoint(family, (sockaddr[0], port, *sockaddr[2:]))
