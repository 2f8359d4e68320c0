"""Collectives that are made of others, so that every backend has them."""

from __future__ import annotations

import functools
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from cobre_comm.common.call_forms import tells_forms
from cobre_comm.errors import InvalidBufferSize
from cobre_comm.reduce_op import ReduceOp

Int: TypeAlias = "int | np.integer[Any]"
Float: TypeAlias = "float | np.floating[Any]"

# Reading a member of an enumeration takes as long as reducing a number on one rank.
_SUM, _MIN, _MAX = ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)

ARRAY_HINT = "reduce an array by comm.allreduce(send, recv, ReduceOp.{})"
RECV_HINT = "recv needs size * send.size elements"


class _Core(Protocol):
    """A communicator, as far as these methods use it."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp = ...) -> None:
        """Reduce element by element."""

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: NDArray[Any], displs: NDArray[Any]
    ) -> None:
        """Gather blocks of different lengths."""


@tells_forms("comm")
class Derived:
    """Methods of every communicator that stand on ``allreduce`` and ``allgatherv``.

    They raise what these raise. A rank that calls the other one with the same arguments agrees.
    """

    __slots__ = ()

    @overload
    def sum(self: _Core, x: Int) -> int: ...
    @overload
    def sum(self: _Core, x: Float) -> float: ...
    def sum(self: _Core, x: Int | Float) -> int | float:
        """Return the sum of one number of each rank, on all ranks; collective.

        An ``allreduce`` of one element: added in rank order, the same bits on all ranks and on
        every backend.

        Parameters
        ----------
        x : int or float
            NumPy's numbers too. All ranks give an int, or all a float: others disagree.

        Returns
        -------
        int or float
            Of ints an int, which wraps at 64 bits; of floats a float (float64).

        Raises
        ------
        TypeError
            If ``x`` is no number, or a bool or complex.
        ValueError
            If an int does not fit 64 bits.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.sum(2), comm.sum(2.5)
        (2, 2.5)
        """
        return _reduced(self, "sum", x, _SUM)

    @overload
    def min(self: _Core, x: Int) -> int: ...
    @overload
    def min(self: _Core, x: Float) -> float: ...
    def min(self: _Core, x: Int | Float) -> int | float:
        """Return the smallest of one number of each rank, on all ranks; collective.

        Takes, returns and raises what :meth:`sum` does. A NaN on any rank gives NaN.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().min(2.5)
        2.5
        """
        return _reduced(self, "min", x, _MIN)

    @overload
    def max(self: _Core, x: Int) -> int: ...
    @overload
    def max(self: _Core, x: Float) -> float: ...
    def max(self: _Core, x: Int | Float) -> int | float:
        """Return the largest of one number of each rank, on all ranks; collective.

        Takes, returns and raises what :meth:`sum` does. A NaN on any rank gives NaN.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().max(3)
        3
        """
        return _reduced(self, "max", x, _MAX)

    def allgather(self: _Core, send: NDArray[Any], recv: NDArray[Any]) -> None:
        """Gather blocks of one length from all ranks, on all ranks.

        Afterwards ``recv`` holds the ``send`` of ranks 0, 1, ..., size - 1 after one another.

        Parameters
        ----------
        send : ndarray
            The same number of elements on all ranks, of any fixed-size dtype without Python
            objects. May be exactly its own block of ``recv``.
        recv : ndarray
            Writable, same dtype, ``size * send.size`` elements, of any shape.

        Raises
        ------
        TypeError, ValueError
            For arrays that cannot be used.
        InvalidBufferSize
            If ``recv`` has another length.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> import numpy as np
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> everyone = np.empty((comm.size, 3))
        >>> comm.allgather(np.arange(3.0), everyone)
        >>> everyone
        array([[0., 1., 2.]])
        """
        count, room = _size(send), _size(recv)
        if room != self.size * count:
            raise InvalidBufferSize("allgather", self.size * count, room, RECV_HINT)
        self.allgatherv(send, recv, *_equal_blocks(self.size, count))


def _reduced(comm: _Core, name: str, x: Int | Float, op: ReduceOp) -> int | float:
    both = _array_of(name, x)
    comm.allreduce(both, both, op)
    result: int | float = both.item()
    return result


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
    elif isinstance(x, np.ndarray):
        hint = f"; {ARRAY_HINT.format(name.upper())}"
    got = f"{type(x).__name__} {x!r}"
    raise TypeError(f"{name}: x must be an int or a float, got {got}"[:120] + hint)


def _size(array: NDArray[Any]) -> int:
    """Return the number of elements, of a list too: ``allgatherv`` refuses that."""
    return array.size if isinstance(array, np.ndarray) else int(np.size(array))


@functools.lru_cache(maxsize=64)
def _equal_blocks(size: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts and displacements of blocks of one length."""
    counts = np.full(size, count, dtype=np.int64)
    return counts, count * np.arange(size, dtype=np.int64)
