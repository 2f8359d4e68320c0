"""Methods of communicators that only call other methods, so every backend has them."""

from __future__ import annotations

import functools
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cobre_comm.arguments.arrays import plain_array
from cobre_comm.arguments.mistakes import LIST, RECV_HINT, explained
from cobre_comm.arguments.numbers import as_integer
from cobre_comm.errors import InvalidBufferSize
from cobre_comm.reduce_op import ReduceOp

Int: TypeAlias = "int | np.integer[Any]"
Float: TypeAlias = "float | np.floating[Any]"

_OPS = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN, "max": ReduceOp.MAX}
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)

ARRAY_HINT = "reduce an array by comm.allreduce(send, recv, ReduceOp.{})"
LARGEST_SHARED = 2**62  # elements of all shares, so that the end of a share fits 64 bits
SHARED_HINT = f"n must be from 0 to {LARGEST_SHARED}, and so must width and n * width"


class _Core(Protocol):
    """The methods of a communicator that the functions of this file use."""

    @property
    def rank(self) -> int:
        """The number of this rank."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp = ...) -> None:
        """Reduce element by element."""

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: NDArray[Any], displs: NDArray[Any]
    ) -> None:
        """Gather blocks of different lengths."""


def reduced(comm: _Core, name: str, x: Int | Float) -> int | float:
    """Reduce one number of each rank by the operation with this name, on all ranks; collective."""
    both = _array_of(name, x)
    comm.allreduce(both, both, _OPS[name])
    result: int | float = both.item()
    return result


def allgather(comm: _Core, send: NDArray[Any], recv: NDArray[Any]) -> None:
    """Gather blocks of one length from all ranks, on all ranks; collective."""
    count = plain_array("allgather", "send", send).size
    room = plain_array("allgather", "recv", recv).size
    if room != comm.size * count:
        raise InvalidBufferSize("allgather", comm.size * count, room, RECV_HINT)
    comm.allgatherv(send, recv, *_equal_blocks(comm.size, count))


def share(comm: _Core, n: int) -> tuple[int, int]:
    """Return the first item of this rank's share of ``n`` items, and the item after its last."""
    n = as_integer("share", "n", n)
    if not fits(n, 1):
        raise ValueError(f"share: {SHARED_HINT}")
    return share_of(n, comm.rank, comm.size)


def shares(comm: _Core, n: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return counts and displacements of the shares of all ranks, in elements."""
    n, width = as_integer("shares", "n", n), as_integer("shares", "width", width)
    if not fits(n, width):
        raise ValueError(f"shares: {SHARED_HINT}")
    return tables(n, width, comm.size)


# ``jit/methods/shares.py`` compiles the following three functions too.


def fits(n: int, width: int) -> bool:
    """Tell whether ``n`` items of ``width`` elements can be shared out."""
    return 0 <= n <= LARGEST_SHARED and 0 <= width <= LARGEST_SHARED // max(n, 1)


def share_of(n: int, rank: int, size: int) -> tuple[int, int]:
    """Return the first item of a rank's share of ``n`` items, and the item after its last."""
    each, more = n // size, n % size
    start = rank * each + min(rank, more)
    return start, start + each + (1 if rank < more else 0)


def tables(n: int, width: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return counts and displacements of the shares of ``n`` items of ``width`` elements."""
    each, more = n // size, n % size
    counts, displs = np.empty(size, np.int64), np.empty(size, np.int64)
    start = 0
    for rank in range(size):
        counts[rank], displs[rank] = width * (each + (1 if rank < more else 0)), start
        start += counts[rank]
    return counts, displs


def _array_of(name: str, x: object) -> NDArray[Any]:
    """Return an array of one number."""
    if isinstance(x, (float, np.floating)):
        both: NDArray[Any] = np.empty(1, _FLOAT64)  # numpy.array([x]) takes twice as long
        both[0] = x
        return both
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        try:
            both = np.empty(1, _INT64)
            both[0] = int(x)
            return both
        except OverflowError:
            raise ValueError(f"{name}: x does not fit a 64-bit signed integer: {x}") from None
    hint = ""
    if isinstance(x, (bool, np.bool_)):
        hint = "; pass int(x) to count"
    elif isinstance(x, (np.ndarray, list, tuple)):
        hint = f"; {ARRAY_HINT.format(name.upper())}"
    got = f"{type(x).__name__} {x!r}"
    raise explained(TypeError(f"{name}: x must be an int or a float, got {got}"[:120] + hint), LIST)


@functools.lru_cache(maxsize=64)
def _equal_blocks(size: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts and displacements of blocks of one length."""
    return tables(size, count, size)
