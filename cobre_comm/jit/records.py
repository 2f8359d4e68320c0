"""From a communicator or a region in ``@njit`` code to the record behind it."""

from __future__ import annotations

from typing import Any

from cobre_kernels.collective.comm import COMM
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from cobre_comm.jit.values import COMM_TYPE


@intrinsic
def record_of(typingctx: Any, comm: Any) -> Any:
    """Return the record of a communicator."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_value(args[0], 0)

    return COMM_TYPE(comm), codegen


@intrinsic
def in_frame(typingctx: Any, number: Any) -> Any:
    """Return the address of a copy of a number, which lives as long as the calling function."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        copy = cgutils.alloca_once(builder, args[0].type)
        builder.store(args[0], copy)
        return builder.ptrtoint(copy, cgutils.intp_t)

    return types.int64(number), codegen


@intrinsic
def explain(typingctx: Any, record: Any, operation: Any, outcome: Any, a: Any, b: Any) -> Any:
    """Keep the exception of a status for :class:`~cobre_comm.failure.Failure`, raised next."""
    words = [types.int64] * 4
    function_type = ir.FunctionType(ir.VoidType(), [cgutils.intp_t] * 5)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.add(args[0], cgutils.intp_t(COMM.offsets["explain"]))
        address = builder.load(builder.inttoptr(word, cgutils.intp_t.as_pointer()))
        builder.call(builder.inttoptr(address, function_type.as_pointer()), args)
        return context.get_dummy_value()

    return types.void(record, *words), codegen


@intrinsic(prefer_literal=True)
def region_field(typingctx: Any, region: Any, name: Any) -> Any:
    """Return a field of a region: comm (a record), identity, view, or memory: a writable view."""
    field = name.literal_value
    fields = {"comm": COMM_TYPE, "identity": types.int64, "view": region.view}
    result = {**fields, "memory": region.memory}[field]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = cgutils.create_struct_proxy(region)(context, builder, value=args[0])
        if field != "memory":
            return impl_ret_borrowed(context, builder, result, getattr(struct, field))
        memory = context.make_array(result)(context, builder, value=struct.view)
        memory.parent = cgutils.get_null_value(memory.parent.type)  # that array is read-only
        return impl_ret_borrowed(context, builder, result, memory._getvalue())

    return result(region, name), codegen
