"""How a communicator, or a region, becomes an argument of an ``@njit`` function.

numba sees two types: the communicator of ``local``, whose collectives compile to copies, and every
other communicator. So a user's function is compiled once for ``local`` and once for all other
backends. The value is the address of the communicator's record, an argument like any other. The
compiled code holds nothing of this process, so ``cache=True`` serves other ranks, sizes, backends
and runs. The type's name carries a hash of our sources, so numba's cache never serves code of
another version.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.hashing import hash_of, kernel_sources
from cobre_kernels.machine.record_types import RecordType
from numba.core import cgutils, types
from numba.extending import NativeValue, models, register_model, unbox

COMM_TYPE = RecordType(COMM.name)


@functools.cache
def version_tag() -> str:
    """Return a hash of all sources whose code ends up in a user's compiled function."""
    package = pathlib.Path(__file__).parents[1]
    folders = (package, package / "jit", package / "common")
    ours = [path for folder in folders for path in folder.glob("*.py")]
    tag: str = hash_of([*kernel_sources(), *ours])
    return tag


def restored(name: str, class_name: str, *arguments: Any) -> Any:
    """Return a pickled type; of another version, a type that equals no other.

    numba keeps the types of a user's cached function in pickles. It loads them before it looks at
    their version, and writes those of older versions again. So a type is pickled with its own name,
    by the name of this function, which every version has.
    """
    classes = {"CommType": CommType, "LocalCommType": LocalCommType, "RegionType": RegionType}
    current = classes[class_name](*arguments) if class_name in classes else None
    return current if current is not None and current.name == name else types.Opaque(name)


class CommType(types.Type):
    """A communicator in ``@njit`` code."""

    def __init__(self) -> None:
        super().__init__(name=f"{type(self).__name__}({version_tag()})")

    def __reduce__(self) -> Any:
        return restored, (self.name, type(self).__name__)


class LocalCommType(CommType):
    """The communicator of ``local``."""


class RegionType(types.Type):
    """A shared region in ``@njit`` code.

    Parameters
    ----------
    dtype : numba type
        Of its elements.
    synchronises : bool
        Whether ``fence`` has ranks to meet.
    """

    def __init__(self, dtype: Any, synchronises: bool) -> None:
        self.view = types.Array(dtype, 1, "C", readonly=True)
        self.synchronises = synchronises
        super().__init__(name=f"SharedRegion({dtype}, {synchronises}, {version_tag()})")

    def __reduce__(self) -> Any:
        arguments = self.view.dtype, self.synchronises
        return restored, (self.name, type(self).__name__, *arguments)


@register_model(LocalCommType)
@register_model(CommType)
class _CommModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, cgutils.intp_t)


@register_model(RegionType)
class _RegionModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        members = [("comm", COMM_TYPE), ("identity", types.int64), ("view", fe_type.view)]
        super().__init__(dmm, fe_type, members)


def _unbox_integer(c: Any, obj: Any, attribute: str) -> Any:
    boxed = c.pyapi.object_getattr_string(obj, attribute)
    value = c.pyapi.long_as_longlong(boxed)
    c.pyapi.decref(boxed)
    return value


@unbox(LocalCommType)
@unbox(CommType)
def _unbox_comm(typ: Any, obj: Any, c: Any) -> NativeValue:
    return NativeValue(_unbox_integer(c, obj, "_address"))


@unbox(RegionType)
def _unbox_region(typ: Any, obj: Any, c: Any) -> NativeValue:
    region = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    comm = c.pyapi.object_getattr_string(obj, "_comm")
    region.comm = _unbox_integer(c, comm, "_address")
    c.pyapi.decref(comm)
    region.identity = _unbox_integer(c, obj, "_identity")
    readable = c.pyapi.object_getattr_string(obj, "_readable")
    view = c.unbox(typ.view, readable)
    region.view = view.value

    def cleanup() -> None:
        if view.cleanup is not None:
            view.cleanup()
        c.pyapi.decref(readable)

    return NativeValue(region._getvalue(), is_error=view.is_error, cleanup=cleanup)
