"""From a communicator or a region in ``@njit`` code to the record behind it."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from cobre_comm.jit.types import COMM_TYPE


@intrinsic
def record_of(typingctx: Any, comm: Any) -> Any:
    """Return the record of a communicator."""
    return COMM_TYPE(comm), lambda context, builder, signature, args: args[0]


@intrinsic
def address_of(typingctx: Any, comm: Any) -> Any:
    """Return the address of a record."""
    return types.int64(comm), lambda context, builder, signature, args: args[0]


@intrinsic(prefer_literal=True)
def region_field(typingctx: Any, region: Any, name: Any) -> Any:
    """Return a field of a region: comm (a record), identity, or view."""
    field = name.literal_value
    result = {"comm": COMM_TYPE, "identity": types.int64, "view": region.view}[field]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = cgutils.create_struct_proxy(region)(context, builder, value=args[0])
        return impl_ret_borrowed(context, builder, result, getattr(struct, field))

    return result(region, name), codegen
