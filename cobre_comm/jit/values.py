"""Model, boxing and constants of an object of ours in ``@njit`` code.

A value has the fields that the table names (``types.py``); the first field is the address of a
record. Like an array, it has a count on the Python object (``holding.py``). So a tuple, a
``jitclass``, a ``structref`` or a ``typed.List`` keeps the object alive as long as it holds the
value. Python gets the same object back. Compiled code contains nothing of this process, so code in
numba's cache works for other ranks, sizes, backends and runs. There is one exception: if a
communicator is in a global or a closure, the code contains its address, and numba does not cache
such code.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any

from cobre_kernels.machine.compiling.numba_internals import (
    AbstractTemplate,
    _nrt_python,
    cgutils,
    lower_constant,
)
from cobre_kernels.machine.compiling.record_types import RecordType
from numba import LoweringError, types
from numba.extending import (
    NativeValue,
    box,
    infer,
    lower_builtin,
    overload,
    register_model,
    unbox,
)

from cobre_comm.arguments.mistakes import explained
from cobre_comm.jit.holding import HeldModel
from cobre_comm.jit.types import OBJECT_TYPES, ObjectType, carry_version

OWNER = types.MemInfoPointer(types.voidptr)


class _ObjectModel(HeldModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, [*fe_type.field_types.items(), ("owner", OWNER)])


for _type in OBJECT_TYPES:
    register_model(_type)(_ObjectModel)


@unbox(ObjectType)
def _unbox(typ: Any, obj: Any, c: Any) -> NativeValue:
    """Read the fields of a Python object into a value, which now holds the object.

    If an attribute is missing, or an exception is set, the code that follows is skipped. numba
    gives the count on the object back when it drops the value.
    """
    carry_version(c.context)
    message = f"this is not {typ.what}, or one whose __init__ has not run"
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    value = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    with contextlib.ExitStack() as exits:
        for field in typ.fields:
            found = obj
            for name in field.path.split("."):
                found = c.pyapi.object_getattr_string(found, name)
                with cgutils.early_exit_if_null(c.builder, exits, found):
                    c.pyapi.err_set_string("PyExc_TypeError", message)
                    c.builder.store(cgutils.true_bit, failed)
                c.pyapi.decref(found)  # the object with this attribute keeps it alive
            numba_type = typ.field_types[field.name]
            if isinstance(numba_type, RecordType):
                word = c.pyapi.long_as_longlong(found)
            else:
                native = c.unbox(numba_type, found)
                with cgutils.early_exit_if(c.builder, exits, native.is_error):
                    c.builder.store(cgutils.true_bit, failed)
                word = native.value
            setattr(value, field.name, word)
        value.owner = c.pyapi.nrt_meminfo_new_from_pyobject(obj, obj)
    return NativeValue(value._getvalue(), is_error=c.builder.load(failed))


@box(ObjectType)
def _box(typ: Any, val: Any, c: Any) -> Any:
    """Return the Python object itself."""
    value = cgutils.create_struct_proxy(typ)(c.context, c.builder, value=val)
    obj = c.context.nrt.meminfo_data(c.builder, value.owner)
    c.pyapi.incref(obj)
    c.context.nrt.decref(c.builder, typ, val)
    return obj


@lower_constant(ObjectType)
def _constant(context: Any, builder: Any, typ: Any, obj: Any) -> Any:
    """Put a global, a closure's variable or a default into the code, which keeps it for ever."""
    if typ.no_constant:
        raise LoweringError(typ.no_constant)
    carry_version(context)
    value = cgutils.create_struct_proxy(typ)(context, builder)
    for field in typ.fields:
        number = operator.attrgetter(field.path)(obj)
        address = context.add_dynamic_addr(builder, number, info=typ.variable)
        setattr(value, field.name, builder.ptrtoint(address, cgutils.intp_t))
    owner = _nrt_python.meminfo_new(id(obj), obj)
    value.owner = context.add_dynamic_addr(builder, owner, info=typ.variable)
    return value._getvalue()


@lower_builtin(operator.is_, ObjectType, ObjectType)
def _is_same(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Tell whether two values are the same Python object."""
    values = zip(signature.args, args, strict=True)
    owners = [cgutils.create_struct_proxy(t)(context, builder, value=v).owner for t, v in values]
    left, right = (context.nrt.meminfo_data(builder, owner) for owner in owners)
    return builder.icmp_unsigned("==", left, right)


@overload(operator.eq)
def _equal(left, right):  # type: ignore[no-untyped-def]  # numba compares by the returned function
    if isinstance(left, ObjectType) and isinstance(right, ObjectType):
        return lambda left, right: left is right
    return None


@overload(operator.ne)
def _unequal(left, right):  # type: ignore[no-untyped-def]
    if isinstance(left, ObjectType) and isinstance(right, ObjectType):
        return lambda left, right: left is not right
    return None


@overload(bool)
def _truth(value):  # type: ignore[no-untyped-def]
    """Every object of ours is true, as in Python."""
    return (lambda value: True) if isinstance(value, ObjectType) else None


@overload(str)
def _text(value):  # type: ignore[no-untyped-def]
    """Refuse ``str`` of an object by a ``TypeError``, which reaches the user as it is."""
    if isinstance(value, ObjectType) and value.no_text:
        raise TypeError(
            f"{value.what} has no text in @njit code; write its numbers: {value.no_text}"
        )


def _refuse_as_sequence(value: Any, *others: Any) -> None:
    """Refuse an index, ``len`` or a ``for`` loop by a ``TypeError``, as ``_text`` does."""
    if isinstance(value, ObjectType) and value.no_sequence:
        sentence, word = value.no_sequence
        raise explained(TypeError(sentence), word)


for _function in (operator.getitem, operator.setitem, len):
    overload(_function)(_refuse_as_sequence)


@infer
class _Loop(AbstractTemplate):  # type: ignore[misc]  # numba is untyped
    key = "getiter"

    def generic(self, args: Any, kws: Any) -> None:
        """Return no signature, because numba's own templates have those of all sequences."""
        _refuse_as_sequence(args[0])
