"""Reads the fields of an object of ours in ``@njit`` code, such as the address of its record."""

from __future__ import annotations

from typing import Any

from cobre_kernels.collective.calls import BARRIER
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.guard import standing
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiling.numba_internals import cgutils, impl_ret_borrowed
from cobre_kernels.machine.compiling.own_names import own_named
from cobre_kernels.machine.kernel import run
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from cobre_comm.failure import Failure
from cobre_comm.jit.types import COMM_TYPE

EXPLAIN = "cobre_comm.explain"


@intrinsic
def record_of(typingctx: Any, comm: Any) -> Any:
    """Return the record of a communicator."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_value(args[0], 0)

    return COMM_TYPE(comm), codegen


@intrinsic
def in_frame(typingctx: Any, number: Any) -> Any:
    """Return the address of a copy of a number, or of a tuple of int64.

    The copy lives as long as the calling function.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        copy = cgutils.alloca_once(builder, args[0].type)
        builder.store(args[0], copy)
        return builder.ptrtoint(copy, cgutils.intp_t)

    return types.int64(number), codegen


@intrinsic
def keep(typingctx: Any, array: Any) -> Any:
    """Keep an array alive until here, for a kernel that has its address."""
    return types.void(array), lambda context, builder, signature, args: context.get_dummy_value()


@intrinsic
def explain(typingctx: Any, record: Any, operation: Any, outcome: Any, at: Any) -> Any:
    """Make the exception of a status; the caller raises :class:`~cobre_comm.failure.Failure` next.

    ``at`` is the address of the call, or 0.
    """
    words = [types.int64] * 3

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.globals.get(EXPLAIN) or _explaining(context, builder.module)
        builder.call(function, args)
        return context.get_dummy_value()

    return types.void(record, *words), codegen


@register_jitable
def check_usable(record: Any) -> None:
    """Raise ``InvalidCommunicator`` if no collective may begin any more.

    A collective under way is no reason to raise.
    """
    outcome = standing(record)
    if outcome != OK:
        explain(record, BARRIER, outcome, 0)
        raise Failure


def entering(operation: int) -> Any:
    """Return the function that calls the entry of a collective, and raises if the entry fails."""
    check = checking(operation)

    def enter(record: Any, call: Any) -> None:
        check(record, call, run(record.collectives[operation].entry, record, call))

    return register_jitable(own_named(enter))


def checking(operation: int) -> Any:
    """Return the function that raises if the entry of a collective has failed.

    When an exception leaves a function, numba frees none of the arrays that the function still
    uses. So call the returned function after the last use of arrays.
    """

    def check(record: Any, call: Any, outcome: int) -> None:
        if outcome != OK:
            explain(record, operation, outcome, in_frame(call))
            raise Failure

    return register_jitable(own_named(check))


def _explaining(context: Any, module: Any) -> Any:
    """Define a function that calls Python, so that LLVM can inline the methods that call it.

    Python code may not run while an exception is pending. In ``@vectorize`` the exception of an
    earlier element may be pending. This exception is laid aside for the call; numba drops it when
    numba raises the next exception.

    If a signal handler raises when the call begins, the call is made once more, and gets the
    handler's exception.
    """
    function_type = ir.FunctionType(ir.VoidType(), [cgutils.intp_t] * 4)
    function = ir.Function(module, function_type, EXPLAIN)
    function.linkage = "internal"
    for attribute in ("noinline", "cold"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    python = context.get_python_api(builder)
    gil = python.gil_ensure()
    pending, raised = _slots(builder, python), _slots(builder, python)
    _fetch(builder, python, pending)
    earlier = builder.ptrtoint(builder.load(pending[1]), cgutils.intp_t)
    told = cgutils.pack_array(builder, [*function.args, earlier])
    words = cgutils.alloca_once_value(builder, told)
    address = python.long_from_longlong(builder.ptrtoint(words, cgutils.intp_t))
    word = builder.add(function.args[0], cgutils.intp_t(COMM.offsets["explain"]))
    target = builder.load(builder.inttoptr(word, python.pyobj.as_pointer()))
    call = builder.append_basic_block()
    builder.branch(call)
    builder.position_at_end(call)
    result = python.call_function_objargs(target, [address, builder.load(raised[1])])
    for each in (result, *map(builder.load, raised)):
        python.decref(each)  # does nothing for NULL
    with builder.if_then(cgutils.is_null(builder, result)):
        _fetch(builder, python, raised)
        builder.branch(call)
    python.decref(address)
    python.err_restore(*(builder.load(slot) for slot in pending))
    python.gil_release(gil)
    builder.ret_void()
    return function


def _slots(builder: Any, python: Any) -> Any:
    """Return places for the class, the instance and the traceback of an exception."""
    return [cgutils.alloca_once(builder, python.pyobj, zfill=True) for _ in range(3)]


def _fetch(builder: Any, python: Any, slots: Any) -> None:
    """Take the pending exception, if there is one, and make it an instance of its class."""
    python.err_fetch(*slots)
    function_type = ir.FunctionType(ir.VoidType(), [each.type for each in slots])
    name = "PyErr_NormalizeException"
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    with builder.if_then(cgutils.is_not_null(builder, builder.load(slots[0]))):
        builder.call(function, slots)


@intrinsic(prefer_literal=True)
def field_of(typingctx: Any, borrowed: Any, name: Any) -> Any:
    """Return a field of an object (``types.HeldField``) by the field's name."""
    field = name.literal_value
    result = borrowed.this.field_types[field]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = cgutils.create_struct_proxy(borrowed)(context, builder, value=args[0])
        return impl_ret_borrowed(context, builder, result, getattr(struct, field))

    return result(borrowed, name), codegen
