"""The reductions that ``allreduce`` offers."""

from __future__ import annotations

import enum
from typing import Any

_GATHER = "has no counterpart here: comm.allgather the numbers, and fold or search them"
SAID = {
    **dict.fromkeys(("AVG", "AVERAGE", "MEAN"), "is ReduceOp.SUM here, divided by comm.size"),
    **dict.fromkeys(("LXOR", "BXOR", "MINLOC", "MAXLOC"), _GATHER),
}  # for each name of a missing operation, the rest of a sentence about it


class _Operations(enum.EnumMeta):
    """The class of ``ReduceOp``; its error says what to write in place of a missing operation."""

    def __getattr__(cls, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        if name in cls._member_map_:  # Python 3.11 uses this method to find members
            return cls._member_map_[name]
        raise AttributeError(cls._lacks(name))

    def __getitem__(cls, name: str) -> Any:
        if name not in cls._member_map_:
            raise KeyError(cls._lacks(name))
        return cls._member_map_[name]

    def _lacks(cls, name: str) -> str:
        said = SAID.get(name.upper(), f"does not exist: there are {', '.join(cls._member_map_)}")
        return f"ReduceOp.{name} {said}"


class ReduceOp(enum.IntEnum, metaclass=_Operations):
    """Element-wise reduction, folded in rank order 0, 1, ..., size - 1.

    ``ReduceOp`` is an ``IntEnum``, so ``@njit`` code can use it. Its values are those in the table
    of ``cobre_kernels.collective.reduction.fold``. Complex numbers have SUM alone, bool has all
    operations but SUM and PROD, and floats have all but BAND and BOR.

    Examples
    --------
    >>> from cobre_comm import LocalBackend, ReduceOp
    >>> flags = np.array([True, False])
    >>> LocalBackend().allreduce(flags, flags, ReduceOp.MAX)
    >>> flags
    array([ True, False])
    """

    SUM = 0
    """IEEE 754 sum without reassociation; integers wrap."""
    MIN = 1
    """As ``numpy.minimum``; for equal operands the earlier rank's value stays."""
    MAX = 2
    """As ``numpy.maximum``; for equal operands the earlier rank's value stays."""
    PROD = 3
    """IEEE 754 product without reassociation; integers wrap."""
    LAND = 4
    """Logical and: 1 where all operands are nonzero, else 0; a NaN counts as nonzero."""
    LOR = 5
    """Logical or: 1 where any operand is nonzero, else 0; a NaN counts as nonzero."""
    BAND = 6
    """Bitwise and, of integers and bool."""
    BOR = 7
    """Bitwise or, of integers and bool."""
