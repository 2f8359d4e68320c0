"""What compiled code holds of a communicator, or of a region: the record, and the Python object.

A value is the address of the communicator's record beside a count on the Python object, as that of
an array is. So a tuple, a ``jitclass``, a ``structref`` or a ``typed.List`` keeps the object alive
as long as it holds the value, and gives the same object back to Python. Compiled code holds nothing
of this process, so ``cache=True`` serves other ranks, sizes, backends and runs. A communicator in a
global or a closure is the exception: its address is in the code, and numba does not cache that.
"""

from __future__ import annotations

import operator
from typing import Any

from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.record_types import RecordType
from numba.core import cgutils, types
from numba.core.errors import LoweringError
from numba.core.imputils import lower_constant
from numba.core.runtime import _nrt_python
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    models,
    overload,
    register_model,
    unbox,
)

from cobre_comm.jit.types import CommType, LocalCommType, RegionType

COMM_TYPE = RecordType(COMM.name)
OWNER = types.MemInfoPointer(types.voidptr)  # type: ignore[attr-defined]  # numba is untyped


@register_model(LocalCommType)
@register_model(CommType)
class _CommModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, [("comm", COMM_TYPE), ("owner", OWNER)])


@register_model(RegionType)
class _RegionModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        members = [
            ("comm", COMM_TYPE),
            ("owner", OWNER),
            ("identity", types.int64),
            ("view", fe_type.view),
        ]
        super().__init__(dmm, fe_type, members)


def _unbox_integer(c: Any, obj: Any, attribute: str) -> Any:
    boxed = c.pyapi.object_getattr_string(obj, attribute)
    value = c.pyapi.long_as_longlong(boxed)
    c.pyapi.decref(boxed)
    return value


def _held(typ: Any, obj: Any, c: Any) -> Any:
    """Return a value of this type that holds the object; numba gives the count back."""
    value = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    value.owner = c.pyapi.nrt_meminfo_new_from_pyobject(obj, obj)
    return value


@unbox(LocalCommType)
@unbox(CommType)
def _unbox_comm(typ: Any, obj: Any, c: Any) -> NativeValue:
    value = _held(typ, obj, c)
    value.comm = _unbox_integer(c, obj, "_address")
    return NativeValue(value._getvalue())


@unbox(RegionType)
def _unbox_region(typ: Any, obj: Any, c: Any) -> NativeValue:
    value = _held(typ, obj, c)
    comm = c.pyapi.object_getattr_string(obj, "_comm")
    value.comm = _unbox_integer(c, comm, "_address")
    c.pyapi.decref(comm)
    value.identity = _unbox_integer(c, obj, "_identity")
    readable = c.pyapi.object_getattr_string(obj, "_readable")
    view = c.unbox(typ.view, readable)
    c.pyapi.decref(readable)  # the view holds it
    value.view = view.value
    return NativeValue(value._getvalue(), is_error=view.is_error)


@box(RegionType)
@box(LocalCommType)
@box(CommType)
def _box(typ: Any, val: Any, c: Any) -> Any:
    """Return the Python object itself."""
    value = cgutils.create_struct_proxy(typ)(c.context, c.builder, value=val)
    obj = c.context.nrt.meminfo_data(c.builder, value.owner)
    c.pyapi.incref(obj)
    c.context.nrt.decref(c.builder, typ, val)
    return obj


@lower_constant(CommType)
def _constant(context: Any, builder: Any, typ: Any, comm: Any) -> Any:
    """Put a global, a closure's variable or a default into the code; it lives to the end."""
    value = cgutils.create_struct_proxy(typ)(context, builder)
    address = context.add_dynamic_addr(builder, comm._address, info="communicator")
    value.comm = builder.ptrtoint(address, cgutils.intp_t)
    owner = _nrt_python.meminfo_new(id(comm), comm)
    value.owner = context.add_dynamic_addr(builder, owner, info="communicator")
    return value._getvalue()


@lower_constant(RegionType)
def _no_constant(context: Any, builder: Any, typ: Any, region: Any) -> Any:
    raise LoweringError(
        "a shared region cannot be a global or closure variable of @njit code; "
        "pass it as an argument"
    )


@lower_builtin(operator.is_, RegionType, RegionType)
@lower_builtin(operator.is_, CommType, CommType)
def _is_same(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Tell whether both are the same Python object."""
    values = zip(signature.args, args, strict=True)
    owners = [cgutils.create_struct_proxy(t)(context, builder, value=v).owner for t, v in values]
    left, right = (context.nrt.meminfo_data(builder, owner) for owner in owners)
    return builder.icmp_unsigned("==", left, right)


@overload(operator.eq)
def _equal(left, right):  # type: ignore[no-untyped-def]  # numba compares it with what it returns
    if isinstance(left, CommType) and isinstance(right, CommType):
        return lambda left, right: left is right
    return None


@overload(operator.ne)
def _unequal(left, right):  # type: ignore[no-untyped-def]
    if isinstance(left, CommType) and isinstance(right, CommType):
        return lambda left, right: left is not right
    return None
