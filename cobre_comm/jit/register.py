"""Makes our objects and functions known to numba, when ``numba_types.py`` imports this module."""

from __future__ import annotations

import functools
from typing import Any

from cobre_kernels.machine.compiling.checked_cache import check_loads
from cobre_kernels.machine.compiling.compiler import let_reduce_take_routines
from numba import from_dtype

# These modules give the types their attributes. numba asks the modules in this order.
from cobre_comm.jit import attributes  # noqa: F401  # isort: skip
from cobre_comm.jit import methods  # noqa: F401  # isort: skip
from cobre_comm.jit import regions  # noqa: F401  # isort: skip
from cobre_comm.jit import values  # noqa: F401  # isort: skip
from cobre_comm.jit import works  # noqa: F401  # isort: skip
from cobre_comm.jit import draws, signals  # noqa: F401  # isort: skip
from cobre_comm.jit.types import CommType, LocalCommType, RegionType, WorkType

check_loads()
let_reduce_take_routines()

TYPES = {"communicator": CommType(), "local": LocalCommType(), "work": WorkType()}


def give_type(kind: str, owner: Any, value: Any) -> Any:
    """Return the type of an object, and store the type in its class, where numba finds it later.

    The type of a region is stored in the region itself. If the region is closed,
    ``InvalidCommunicator`` is raised.
    """
    if kind == "region":
        owner = value
        if not hasattr(value, "_memory"):
            raise TypeError("this is not a shared region, or one whose __init__ has not run")
        value.as_slice()
        synchronises = value._comm._numba_type_.synchronises
        made = _region_type(value.dtype, len(value.shape), synchronises)
    else:
        made = TYPES[kind]
    owner._numba_type_ = made
    return made


@functools.cache
def _region_type(dtype: Any, ndim: int, synchronises: bool) -> RegionType:
    return RegionType(from_dtype(dtype), ndim, synchronises)
