"""What ``bool`` and ``str`` make of a communicator, or of a region, in ``@njit`` code."""

from __future__ import annotations

from numba.extending import overload

from cobre_comm.jit.types import CommType, RegionType


@overload(bool)
def _truth(value):
    """Every object is true that does not say otherwise, as in Python."""
    return (lambda value: True) if isinstance(value, (CommType, RegionType)) else None


@overload(str)
def _text(value):
    """Refuse it in one sentence: numba raises an error that is none of its own at once."""
    if isinstance(value, CommType):
        raise TypeError(
            "a communicator has no text in @njit code; write its numbers: "
            'f"rank {comm.rank} of {comm.size}"'
        )
    if isinstance(value, RegionType):
        raise TypeError(
            "a shared region has no text in @njit code; write its numbers: "
            'f"{region.count} elements"'
        )
