"""Makes our objects and functions known to numba; ``numba_types.py`` says who imports this."""

from __future__ import annotations

import functools
from typing import Any

from cobre_kernels.machine.checked_cache import check_loads
from numba import from_dtype
from numba.extending import typeof_impl

# These give the types their attributes; numba asks them in this order.
from cobre_comm.jit import attributes  # noqa: F401  # isort: skip
from cobre_comm.jit import methods  # noqa: F401  # isort: skip
from cobre_comm.jit import regions  # noqa: F401  # isort: skip
from cobre_comm.jit import values  # noqa: F401  # isort: skip
from cobre_comm.jit import works  # noqa: F401  # isort: skip
from cobre_comm.jit import draws, signals  # noqa: F401  # isort: skip
from cobre_comm.contract.shared_region import SharedRegion
from cobre_comm.jit.types import CommType, LocalCommType, RegionType, WorkType

check_loads()

TYPES = {"communicator": CommType(), "local": LocalCommType(), "work": WorkType()}


def give_type(kind: str, owner: Any, value: Any) -> Any:
    """Return the type of an object, and leave it to its class: numba reads it at each call."""
    if kind == "region":  # there are many types of them
        return _typeof_region(value, None)
    owner._numba_type_ = TYPES[kind]
    return owner._numba_type_


@functools.cache  # numba asks for the type before each call of a compiled function
def _region_type(dtype: Any, ndim: int, synchronises: bool) -> RegionType:
    return RegionType(from_dtype(dtype), ndim, synchronises)


@typeof_impl.register(SharedRegion)
def _typeof_region(value: Any, context: Any) -> RegionType:
    if not hasattr(value, "_memory"):
        raise TypeError("this is not a shared region, or one whose __init__ has not run")
    value.as_slice()  # a closed region is an error here
    synchronises = value._comm._numba_type_.synchronises
    return _region_type(value.dtype, len(value.shape), synchronises)
