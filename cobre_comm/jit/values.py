"""What compiled code holds of a communicator, or of a region: the record, and the Python object.

A value is the address of the communicator's record beside a count on the Python object, as that of
an array is (``holding.py``). So a tuple, a ``jitclass``, a ``structref`` or a ``typed.List`` keeps
the object alive as long as it holds the value, and gives the same object back to Python. Compiled
code holds nothing of this process, so ``cache=True`` serves other ranks, sizes, backends and runs.
A communicator in a global or a closure is the exception: its address is in the code, and numba does
not cache that.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import REGION_STATE
from cobre_kernels.machine.numba_internals import _nrt_python, cgutils, lower_constant
from cobre_kernels.machine.record_types import RecordType
from numba import LoweringError, types
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    overload,
    register_model,
    unbox,
)

from cobre_comm.jit.holding import HeldModel
from cobre_comm.jit.types import CommType, LocalCommType, RegionType, carry_version

COMM_TYPE = RecordType(COMM.name)
STATE_TYPE = RecordType(REGION_STATE.name)
OWNER = types.MemInfoPointer(types.voidptr)


@register_model(LocalCommType)
@register_model(CommType)
class _CommModel(HeldModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, [("comm", COMM_TYPE), ("owner", OWNER)])


@register_model(RegionType)
class _RegionModel(HeldModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        members = [
            ("comm", COMM_TYPE),
            ("owner", OWNER),
            ("state", STATE_TYPE),
            ("view", fe_type.view),
        ]
        super().__init__(dmm, fe_type, members)


class _Reading:
    """Reads attributes of a Python object that becomes a value; what misses one is a TypeError."""

    def __init__(self, c: Any, typ: Any, what: str) -> None:
        carry_version(c.context)
        self._c, self._exits = c, contextlib.ExitStack()
        self._message = f"this is not {what}, or one whose __init__ has not run"
        self._failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
        self.value = cgutils.create_struct_proxy(typ)(c.context, c.builder)

    def attribute(self, obj: Any, name: str) -> Any:
        """Return a new reference; what follows is not run if there is no such attribute."""
        found = self._c.pyapi.object_getattr_string(obj, name)
        with cgutils.early_exit_if_null(self._c.builder, self._exits, found):
            self._c.pyapi.err_set_string("PyExc_TypeError", self._message)
            self._c.builder.store(cgutils.true_bit, self._failed)
        return found

    def integer(self, obj: Any, name: str) -> Any:
        boxed = self.attribute(obj, name)
        value = self._c.pyapi.long_as_longlong(boxed)
        self._c.pyapi.decref(boxed)
        return value

    def held(self, obj: Any) -> NativeValue:
        """Return the value, which holds the object; numba gives the count back."""
        self.value.owner = self._c.pyapi.nrt_meminfo_new_from_pyobject(obj, obj)
        self._exits.close()
        return NativeValue(self.value._getvalue(), is_error=self._c.builder.load(self._failed))

    def fail_if(self, is_error: Any) -> None:
        """Leave what follows if an exception is set."""
        with cgutils.early_exit_if(self._c.builder, self._exits, is_error):
            self._c.builder.store(cgutils.true_bit, self._failed)


@unbox(LocalCommType)
@unbox(CommType)
def _unbox_comm(typ: Any, obj: Any, c: Any) -> NativeValue:
    reading = _Reading(c, typ, "a communicator")
    reading.value.comm = reading.integer(obj, "_address")
    return reading.held(obj)


@unbox(RegionType)
def _unbox_region(typ: Any, obj: Any, c: Any) -> NativeValue:
    reading = _Reading(c, typ, "a shared region")
    comm = reading.attribute(obj, "_comm")
    c.pyapi.decref(comm)  # the region holds it
    reading.value.comm = reading.integer(comm, "_address")
    reading.value.state = reading.integer(obj, "_address")
    readable = reading.attribute(obj, "_readable")
    c.pyapi.decref(readable)
    view = c.unbox(typ.view, readable)
    reading.fail_if(view.is_error)
    reading.value.view = view.value
    return reading.held(obj)


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
    carry_version(context)
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
