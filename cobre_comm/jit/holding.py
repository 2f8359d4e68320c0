"""Reference counts of objects of ours in ``@njit`` code.

numba gives a reference back after the last use of a variable. In ``comms.pop().barrier()`` the last
use of the communicator is the reading of the method, which comes before the call. So a bound method
has a count of its own.

numba also removes two steps of a count, one up and one down, if it sees no other step between them.
But in between, a list that pops, a dictionary that deletes, or another thread that assigns to a
field may take a count away. So each count of a value is on an address that is opaque to LLVM, which
keeps numba from removing steps. A method that waits for no rank ends before anything else can run.
So numba may remove the count of such a method if a variable has a count too.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from cobre_kernels.machine.compiling.numba_internals import cgutils
from llvmlite import ir
from numba import TypingError, types
from numba.extending import (
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
)

from cobre_comm.jit.types import OBJECT_TYPES, Borrowed, ObjectType, carry_version
from cobre_comm.old_names import OLD_NAMES


class HeldModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    """A struct with counts that numba cannot remove."""

    def traverse(self, builder: Any) -> list[Any]:
        """Return the type and a reader of each member that numba counts."""
        return [
            (kind, lambda value, read=read: _of_unseen_origin(builder, read(value)))
            for kind, read in super().traverse(builder)
        ]


def _of_unseen_origin(builder: Any, value: Any) -> Any:
    """Return the same value, but LLVM cannot see where its addresses come from."""
    if isinstance(value.type, ir.PointerType):
        copy = ir.InlineAsm(ir.FunctionType(value.type, [value.type]), "", "=r,0", True)
        return builder.call(copy, [value])
    if isinstance(value.type, ir.LiteralStructType):
        for number in range(len(value.type.elements)):
            member = _of_unseen_origin(builder, builder.extract_value(value, number))
            value = builder.insert_value(value, member, number)
    return value


class HeldMethod(types.BoundFunction):  # type: ignore[misc]  # numba is untyped
    """A bound method that may wait: the count on its object is never removed."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature, for all arguments by position."""
        return super().get_call_type(context, *_by_position(self.template, args, kws))

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key of a call that gives its count back even when it fails."""
        return (type(self), *self.typing_key)  # a tuple: class, name


def _by_position(template: Any, args: Any, kws: Any) -> Any:
    """Return the types of all arguments by position, also of the arguments that are left out.

    When numba lowers a call, it asks the overload once more, with all arguments by position. If the
    form of the first question differed, numba would compile two implementations. If the arguments
    do not fit, the error here has one line; numba's error would have twenty.
    """
    signature = inspect.signature(template._overload_func)
    _, *parameters = signature.parameters.values()
    try:
        given = signature.bind(template.this, *args, **kws).arguments
    except TypeError as error:
        form = signature.replace(parameters=parameters)
        raise TypingError(f"{template.key[1]}{form}: {error}") from None
    return tuple(given.get(p.name, types.Omitted(p.default)) for p in parameters), {}


class QuickMethod(HeldMethod):
    """A bound method that waits for no rank."""


register_model(HeldMethod)(lambda dmm, method: dmm[method.this.this])
register_model(QuickMethod)(lambda dmm, method: dmm[method.this])


class _BorrowedModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        this = dmm[fe_type.this]
        super().__init__(dmm, fe_type, [(name, this.get_type(name)) for name in this._fields])


for _lent in {kind.lent for kind in OBJECT_TYPES}:
    register_model(_lent)(_BorrowedModel)


@lower_cast(ObjectType, Borrowed)
def _lend(context: Any, builder: Any, owned: Any, borrowed: Any, value: Any) -> Any:
    return value


@lower_getattr_generic(ObjectType)
def _attribute(context: Any, builder: Any, owned: Any, value: Any, name: str) -> Any:
    """Read an attribute of an object that the caller holds."""
    carry_version(context)
    name = OLD_NAMES.get(owned.variable, {}).get(name, name)
    read = context.get_getattr(owned.borrowed, name)
    return read(context, builder, owned.borrowed, value, name)


def give_back_after(cls: Any, name: str) -> None:
    """Let a call of a method give its count back when the call fails.

    When an exception leaves a function, numba gives back none of the counts of that function. So
    the method runs in a function of its own. The exception leaves that function, and its caller
    gives the count back.
    """

    def call(is_quick: bool, context: Any, builder: Any, signature: Any, args: Any) -> Any:
        carry_version(context)
        convention, result = context.call_conv, signature.return_type
        llvm_type = convention.get_function_type(result, signature.args)
        function = ir.Function(builder.module, llvm_type, builder.module.get_unique_name(name))
        function.linkage = "internal"
        convention.decorate_function(
            function, [f"arg{n}" for n in range(len(args))], signature.args
        )
        inside = ir.IRBuilder(function.append_basic_block())
        given = convention.decode_arguments(inside, signature.args, function)
        value = context.get_function((cls, name), signature)(inside, given)
        convention.return_value(inside, context.get_return_value(inside, result, value))

        given_back = signature.args[0] if is_quick else signature.args[0].this
        status, value = convention.call_function(builder, function, result, signature.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            is_caught = convention.check_try_status(builder).in_try  # then numba continues
            with builder.if_then(builder.not_(is_caught)):
                context.nrt.decref(builder, given_back, args[0])
            convention.return_status_propagate(builder, status)
        return value

    for kind in (HeldMethod, QuickMethod):
        lowered = functools.partial(call, kind is QuickMethod)
        lower_builtin((kind, cls, name), cls, types.VarArg(types.Any))(lowered)
