"""The reductions that ``allreduce`` offers."""

from __future__ import annotations

import enum


class ReduceOp(enum.IntEnum):
    """Element-wise reduction, folded in rank order 0, 1, ..., size - 1.

    An ``IntEnum``, so it is usable inside ``@njit`` code as it stands. The values are those of the
    table in ``cobre_kernels.collective.reduction.fold``. Complex numbers have SUM alone, bool has
    all but SUM and PROD, and floats all but BAND and BOR.

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
    """Logical and: 1 where all are nonzero, a NaN included, else 0."""
    LOR = 5
    """Logical or: 1 where any is nonzero, a NaN included, else 0."""
    BAND = 6
    """Bitwise and, of integers and bool."""
    BOR = 7
    """Bitwise or, of integers and bool."""
