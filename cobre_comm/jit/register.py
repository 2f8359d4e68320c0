"""Classes whose objects may be arguments of ``@njit`` functions."""

from __future__ import annotations

import functools
from typing import Any

from cobre_kernels.machine.compiling.checked_cache import check_loads
from numba import from_dtype
from numba.extending import typeof_impl

# These give the types their attributes; numba asks them in this order.
from cobre_comm.jit import attributes  # noqa: F401  # isort: skip
from cobre_comm.jit import methods  # noqa: F401  # isort: skip
from cobre_comm.jit import regions  # noqa: F401  # isort: skip
from cobre_comm.jit import values  # noqa: F401  # isort: skip
from cobre_comm.jit import works  # noqa: F401  # isort: skip
from cobre_comm.jit.types import CommType, LocalCommType, RegionType, WorkType

check_loads()


def register_backend(cls: Any, *, is_local: bool) -> None:
    """Make objects of ``cls`` usable as arguments of @njit functions."""
    cls._numba_type_ = LocalCommType() if is_local else CommType()  # numba's dispatcher reads it


def register_region(cls: type, *, synchronises: bool) -> None:
    """Make regions of ``cls`` usable as arguments of @njit functions."""

    @functools.cache  # numba asks before each call of a compiled function
    def type_of(dtype: Any, ndim: int) -> RegionType:
        return RegionType(from_dtype(dtype), ndim, synchronises)

    @typeof_impl.register(cls)
    def typeof_region(value: Any, context: Any) -> RegionType:
        if not hasattr(value, "_memory"):
            raise TypeError("this is not a shared region, or one whose __init__ has not run")
        value.as_slice()  # a closed region is an error here
        return type_of(value.dtype, len(value.shape))


def register_work(cls: Any) -> None:
    """Make works of ``cls`` usable as arguments of @njit functions."""
    cls._numba_type_ = WorkType()
