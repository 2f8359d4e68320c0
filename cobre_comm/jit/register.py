"""Classes of communicators and regions that may be arguments of ``@njit`` functions."""

from __future__ import annotations

from typing import Any

from numba.extending import typeof_impl
from numba.np.numpy_support import from_dtype

from cobre_comm.jit import methods  # noqa: F401  # gives the types their methods
from cobre_comm.jit.types import CommType, LocalCommType, RegionType


def register_backend(cls: type, *, is_local: bool) -> None:
    """Make objects of ``cls`` usable as arguments of @njit functions."""
    comm_type = LocalCommType() if is_local else CommType()

    @typeof_impl.register(cls)
    def typeof_comm(value: Any, context: Any) -> CommType:
        return comm_type


def register_region(cls: type, *, synchronises: bool) -> None:
    """Make regions of ``cls`` usable as arguments of @njit functions."""

    @typeof_impl.register(cls)
    def typeof_region(value: Any, context: Any) -> RegionType:
        value.as_slice()  # a closed region is an error here
        return RegionType(from_dtype(value.dtype), synchronises)
