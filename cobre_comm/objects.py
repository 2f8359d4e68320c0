"""Collectives of small Python objects: configuration, summaries, lists of names.

Objects travel as pickles of protocol 5, and their buffers travel apart. So the bytes of an array
inside an object are not copied into the pickle. The functions of this module work in Python only.
For numbers and arrays, the methods of the communicator are faster.

Unpickling runs code that the sender has chosen. So over sockets these functions are refused, unless
the ranks have proven that they know the secret of the job.

Examples
--------
>>> from cobre_comm import LocalBackend, objects
>>> comm = LocalBackend()
>>> objects.broadcast(comm, {"case": "valley", "stages": 12})
{'case': 'valley', 'stages': 12}
>>> objects.allgather(comm, ("rank", comm.rank))
[('rank', 0)]
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre_comm.arguments.numbers import as_integer
from cobre_comm.contract.communicator import Communicator
from cobre_comm.errors import InvalidRoot
from cobre_comm.reports.exception_text import text_of
from cobre_comm.reports.tracebacks import tells_callers

__all__ = ["allgather", "broadcast", "gather"]

Bytes = NDArray[np.uint8]

LARGE_BYTES = 2**23  # if all objects together have more bytes, in_turn receives them one by one
ALIGNMENT = 64  # arrays inside an object begin at multiples of this number


class _Packed(NamedTuple):
    """The pickle of an object and its buffers; or the reason why it cannot be pickled, as text."""

    parts: list[Bytes]
    problem: bool


@tells_callers
def broadcast(comm: Communicator, obj: Any, root: int = 0) -> Any:
    """Return the root's object on every rank; collective.

    Parameters
    ----------
    comm : Communicator
        Over sockets its ranks need a token (``COBRE_TCP_TOKEN``).
    obj : object
        Picklable; read on the root alone.
    root : int
        The rank that gives its object.

    Returns
    -------
    object
        On the root, ``obj`` itself; on other ranks, a copy.

    Raises
    ------
    TypeError
        On all ranks, if the root cannot pickle its object; on one rank alone, if that rank cannot
        unpickle the object. The communicator stays usable.
    PermissionError
        On all ranks, before anything is sent, if the ranks have no token.
    InvalidRoot
        If ``root`` is not a rank.
    CollectiveFailed, InvalidCommunicator
        As for the other collectives.

    Examples
    --------
    >>> from cobre_comm import LocalBackend, objects
    >>> comm = LocalBackend()
    >>> objects.broadcast(comm, {"case": "valley"} if comm.rank == 0 else None)
    {'case': 'valley'}
    """
    _check_proven("broadcast", comm)
    root = _checked_root("broadcast", comm, root)
    is_root = comm.rank == root
    packed = _pack(obj) if is_root else _Packed([], problem=False)
    header = np.array([len(packed.parts), packed.problem], dtype=np.int64)
    with _together(comm, "objects.broadcast"):
        comm.broadcast(header, root)
        lengths = np.zeros(int(header[0]), dtype=np.int64)
        lengths[: len(packed.parts)] = [part.size for part in packed.parts]
        comm.broadcast(lengths, root)
        parts = _cast(comm, packed.parts, lengths.tolist(), root)
    _check_packed("broadcast", [bool(header[1])], [parts], first=root)
    return obj if is_root else _unpack("broadcast", root, parts)


@tells_callers
def allgather(comm: Communicator, obj: Any) -> list[Any]:
    """Return the objects of all ranks, in rank order, on every rank; collective.

    Parameters
    ----------
    comm : Communicator
        Over sockets its ranks need a token (``COBRE_TCP_TOKEN``).
    obj : object
        Picklable.

    Returns
    -------
    list of object
        A copy of the object of each rank.

    Raises
    ------
    TypeError
        On all ranks, if a rank cannot pickle its object; on one rank alone, if that rank cannot
        unpickle an object. The message names the rank that has given the object. The communicator
        stays usable.
    PermissionError
        On all ranks, before anything is sent, if the ranks have no token.
    CollectiveFailed, InvalidCommunicator
        As for the other collectives.

    Examples
    --------
    >>> from cobre_comm import LocalBackend, objects
    >>> comm = LocalBackend()
    >>> objects.allgather(comm, f"rank {comm.rank}")
    ['rank 0']
    """
    return _unpack_all("allgather", _exchange("allgather", comm, obj))


@tells_callers
def gather(comm: Communicator, obj: Any, root: int = 0) -> list[Any] | None:
    """Return the objects of all ranks, in rank order, on the root; collective.

    The root alone receives the objects.

    Parameters
    ----------
    comm : Communicator
        Over sockets its ranks need a token (``COBRE_TCP_TOKEN``).
    obj : object
        Picklable.
    root : int
        The rank that receives the objects, the same on all ranks.

    Returns
    -------
    list of object, or None
        On the root, a copy of the object of each rank; on other ranks None.

    Raises
    ------
    TypeError, PermissionError, CollectiveFailed, InvalidCommunicator
        As :func:`allgather`.
    InvalidRoot
        If ``root`` is not a rank.

    Examples
    --------
    >>> from cobre_comm import LocalBackend, objects
    >>> comm = LocalBackend()
    >>> objects.gather(comm, f"rank {comm.rank}", root=0)
    ['rank 0']
    """
    root = _checked_root("gather", comm, root)
    everyone = _exchange("gather", comm, obj, root)
    return _unpack_all("gather", everyone) if comm.rank == root else None


def in_turn(comm: Communicator, obj: Any) -> Iterator[tuple[int, Any]]:
    """Yield each rank and a copy of its object, on every rank; collective.

    Large objects arrive one by one, each by a broadcast. So every rank has to iterate to the end.
    Errors are those of :func:`allgather`.
    """
    _check_proven("allgather", comm)
    packed = _pack(obj)
    with _together(comm, "objects.allgather"):
        problems, lengths = _exchange_lengths(comm, packed, None)
        is_whole = any(problems) or sum(map(sum, lengths)) <= LARGE_BYTES
        everyone = _gather_parts(comm, packed, lengths, None) if is_whole else []
    if is_whole:
        _check_packed("allgather", problems, everyone, first=0)
        yield from enumerate(_unpack_all("allgather", everyone))
        return
    for rank, sizes in enumerate(lengths):
        own = [part.copy() for part in packed.parts] if rank == comm.rank else []
        with _together(comm, "objects.allgather"):
            parts = _cast(comm, own, sizes, rank)
        yield rank, _unpack("allgather", rank, parts)


def _cast(comm: Communicator, own: list[Bytes], sizes: list[int], root: int) -> list[Bytes]:
    """Return the parts of the root's object: on the root ``own``, on other ranks copies of them."""
    parts = own if comm.rank == root else [np.empty(size, dtype=np.uint8) for size in sizes]
    for part in parts:
        comm.broadcast(part, root)
    return parts


def _exchange(
    operation: str, comm: Communicator, obj: Any, root: int | None = None
) -> list[list[Bytes]]:
    """Return the parts of every rank's object, on the root or on all ranks."""
    _check_proven(operation, comm)
    packed = _pack(obj)
    with _together(comm, f"objects.{operation}"):
        problems, lengths = _exchange_lengths(comm, packed, root)
        # If a rank could not pickle its object, not only the root but all ranks get the reason.
        parts = _gather_parts(comm, packed, lengths, None if any(problems) else root)
    _check_packed(operation, problems, parts, first=0)
    return parts


def _together(comm: Communicator, name: str) -> contextlib.AbstractContextManager[None]:
    """Mark collectives as steps of ``objects``, unless the backend has no such marks."""
    mark: Any = getattr(comm, "_together", contextlib.nullcontext)
    marked: contextlib.AbstractContextManager[None] = mark(name)
    return marked


def _exchange_lengths(
    comm: Communicator, packed: _Packed, root: int | None
) -> tuple[list[bool], list[list[int]]]:
    """Return, for each rank, whether it has a problem, and the lengths of its object's parts."""
    size = comm.size
    headers = np.zeros((size, 2), dtype=np.int64)
    comm.allgather(np.array([len(packed.parts), packed.problem]), headers)
    counts = headers[:, 0].copy()
    problems = headers[:, 1].astype(bool).tolist()
    if any(problems):
        root = None  # all ranks get the reason
    lengths = np.zeros(int(counts.sum()), dtype=np.int64)
    own_lengths = np.array([part.size for part in packed.parts])
    begins = _begins(counts)
    _gather(comm, own_lengths, (lengths, counts, begins), root)
    return problems, [lengths[b : b + n].tolist() for b, n in zip(begins, counts, strict=True)]


def _gather_parts(
    comm: Communicator, packed: _Packed, lengths: list[list[int]], root: int | None
) -> list[list[Bytes]]:
    """Return, for each rank, the parts of its object."""
    parts: list[list[Bytes]] = [[] for _ in lengths]
    for number in range(max(map(len, lengths))):
        sizes = [own[number] if number < len(own) else 0 for own in lengths]
        send = packed.parts[number] if number < len(packed.parts) else np.empty(0, dtype=np.uint8)
        received = _gather_part(comm, send, np.array(sizes, dtype=np.int64), root)
        for rank, own in enumerate(lengths):
            if number < len(own):
                parts[rank].append(received[rank])
    return parts


def _begins(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(counts) - counts


def _gather(comm: Communicator, send: NDArray[Any], rest: Any, root: int | None) -> None:
    """Gather on the root, or on all ranks."""
    recv, counts, displs = rest
    if root is None:
        comm.allgatherv(send, recv, counts, displs)
    else:
        comm.gatherv(send, recv, counts, displs, root)


def _gather_part(
    comm: Communicator, send: Bytes, sizes: NDArray[np.int64], root: int | None
) -> list[Bytes]:
    """Gather one part of each rank; each part begins at an aligned address.

    A rank that receives nothing does not know the lengths: its ``sizes`` are 0, and it needs no
    room.
    """
    displs = _begins(-(-sizes // ALIGNMENT) * ALIGNMENT)
    room = np.empty(int(displs[-1] + sizes[-1]) + ALIGNMENT, dtype=np.uint8)
    skip = -room.ctypes.data % ALIGNMENT
    room = room[skip : skip + int(displs[-1] + sizes[-1])]
    _gather(comm, send, (room, sizes, displs), root)
    return [room[d : d + n] for d, n in zip(displs.tolist(), sizes.tolist(), strict=True)]


def _pack(obj: Any) -> _Packed:
    """Return the bytes of an object, or the reason why it cannot be pickled, as a text."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        text = pickle.dumps(obj, protocol=5, buffer_callback=buffers.append)
        raw = [buffer.raw() for buffer in buffers]
    except Exception as error:  # any error, because the other ranks must learn of it
        reason = f"{type(error).__name__}: {text_of(error)}".encode()
        return _Packed([np.frombuffer(reason, dtype=np.uint8)], problem=True)
    views = itertools.chain([memoryview(text)], raw)
    return _Packed([np.ndarray(v.nbytes, np.uint8, v) for v in views], problem=False)


def _unpack(operation: str, rank: int, parts: list[Bytes]) -> Any:
    """Unpickle a rank's object; all parts have arrived, so an error concerns this rank alone."""
    try:
        return pickle.loads(parts[0].data, buffers=parts[1:])
    except Exception as error:
        raise TypeError(
            f"objects.{operation}: the object of rank {rank} cannot be unpickled here: "
            f"{type(error).__name__}: {text_of(error)}"
        ) from error


def _unpack_all(operation: str, everyone: list[list[Bytes]]) -> list[Any]:
    return [_unpack(operation, rank, parts) for rank, parts in enumerate(everyone)]


def _check_packed(
    operation: str, problems: list[bool], parts: list[list[Bytes]], *, first: int
) -> None:
    """Raise the same error on all ranks if one of them could not pickle its object."""
    for rank, (problem, own) in enumerate(zip(problems, parts, strict=True), first):
        if problem:
            reason = own[0].tobytes().decode(errors="replace")
            raise TypeError(f"objects.{operation}: rank {rank} cannot pickle its object: {reason}")


def _checked_root(operation: str, comm: Communicator, root: object) -> int:
    number = as_integer(f"objects.{operation}", "root", root)
    if not 0 <= number < comm.size:
        raise InvalidRoot(number, comm.size)
    return number


def _check_proven(operation: str, comm: Communicator) -> None:
    """Refuse peers that have not proven who they are, because unpickling runs their code."""
    if not getattr(comm, "_peers_are_proven", True):
        raise PermissionError(
            f"objects.{operation}: the ranks of this job have no secret, and unpickling would run "
            "the code of any program that reaches the port; set COBRE_TCP_TOKEN to the same "
            "secret on all ranks"
        )
