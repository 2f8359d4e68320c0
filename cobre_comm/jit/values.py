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
from cobre_comm.jit.types import OBJECT_TYPES, HeldField, ObjectType, carry_version

OWNER = types.MemInfoPointer(types.voidptr)


class _ObjectModel(HeldModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, [*fe_type.field_types.items(), ("owner", OWNER)])


for _type in OBJECT_TYPES:
    register_model(_type)(_ObjectModel)


class _Reading:
    """Reads the fields of a Python object into a value; a missing attribute is a TypeError."""

    def __init__(self, c: Any, typ: Any) -> None:
        carry_version(c.context)
        self._c, self._exits = c, contextlib.ExitStack()
        self._message = f"this is not {typ.what}, or one whose __init__ has not run"
        self._failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
        self.value = cgutils.create_struct_proxy(typ)(c.context, c.builder)

    def attribute(self, obj: Any, name: str) -> Any:
        """Return a new reference to an attribute; if it is missing, skip the code that follows."""
        found = self._c.pyapi.object_getattr_string(obj, name)
        with cgutils.early_exit_if_null(self._c.builder, self._exits, found):
            self._c.pyapi.err_set_string("PyExc_TypeError", self._message)
            self._c.builder.store(cgutils.true_bit, self._failed)
        return found

    def read(self, obj: Any, field: HeldField, numba_type: Any) -> None:
        """Read a field of the object, following the path of the field."""
        for name in field.path.split("."):
            obj = self.attribute(obj, name)
            self._c.pyapi.decref(obj)  # the object with this attribute keeps it alive
        if isinstance(numba_type, RecordType):
            value = self._c.pyapi.long_as_longlong(obj)
        else:
            native = self._c.unbox(numba_type, obj)
            self.fail_if(native.is_error)
            value = native.value
        setattr(self.value, field.name, value)

    def held(self, obj: Any) -> NativeValue:
        """Return the value, which now holds the object; numba gives the count back."""
        self.value.owner = self._c.pyapi.nrt_meminfo_new_from_pyobject(obj, obj)
        self._exits.close()
        return NativeValue(self.value._getvalue(), is_error=self._c.builder.load(self._failed))

    def fail_if(self, is_error: Any) -> None:
        """Skip the code that follows if an exception is set."""
        with cgutils.early_exit_if(self._c.builder, self._exits, is_error):
            self._c.builder.store(cgutils.true_bit, self._failed)


@unbox(ObjectType)
def _unbox(typ: Any, obj: Any, c: Any) -> NativeValue:
    reading, numba_types = _Reading(c, typ), typ.field_types
    for field in typ.fields:
        reading.read(obj, field, numba_types[field.name])
    return reading.held(obj)


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
def _equal(left, right):  # type: ignore[no-untyped-def]  # numba compares two by its result
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


def _refuse_as_sequence(value: Any) -> None:
    """Refuse an index, ``len`` or a ``for`` loop by a ``TypeError``, as ``_text`` does."""
    if isinstance(value, ObjectType) and value.no_sequence:
        sentence, word = value.no_sequence
        raise explained(TypeError(sentence), word)


@overload(operator.getitem)
def _element(value, index):  # type: ignore[no-untyped-def]
    _refuse_as_sequence(value)


@overload(operator.setitem)
def _assigned(value, index, element):  # type: ignore[no-untyped-def]
    _refuse_as_sequence(value)


@overload(len)
def _length(value):  # type: ignore[no-untyped-def]
    _refuse_as_sequence(value)


@infer
class _Loop(AbstractTemplate):  # type: ignore[misc]  # numba is untyped
    key = "getiter"

    def generic(self, args: Any, kws: Any) -> None:
        """Return no signature, because numba's own templates have those of all sequences."""
        _refuse_as_sequence(args[0])
