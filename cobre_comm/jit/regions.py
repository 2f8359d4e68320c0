"""Shared regions in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective.calls import BARRIER, FENCE, REGION_PART, Barrier
from cobre_kernels.collective.guard import standing
from cobre_kernels.collective.regions import is_closed
from cobre_kernels.collective.status import OK, REGION_IS_CLOSED
from cobre_kernels.machine.compiling.numba_internals import cgutils, impl_ret_borrowed
from cobre_kernels.machine.kernel import run
from numba.extending import intrinsic, register_jitable

from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import integer_reader, is_integer
from cobre_comm.jit.attributes import attribute, collective_method, method
from cobre_comm.jit.fields import explain, field_of, in_frame
from cobre_comm.jit.types import RegionType


@intrinsic
def _writable(typingctx, region):
    """Return a writable view of the whole region; the view of the region itself is read-only."""
    result = region.this.memory

    def codegen(context, builder, signature, args):
        struct = cgutils.create_struct_proxy(region)(context, builder, value=args[0])
        memory = context.make_array(result)(context, builder, value=struct.view)
        memory.parent = cgutils.get_null_value(memory.parent.type)  # the parent is read-only
        return impl_ret_borrowed(context, builder, result, memory._getvalue())

    return result(region), codegen


@register_jitable
def _check_open(region):
    """Raise if this rank has closed the region; views of it live on."""
    if is_closed(field_of(region, "state")):
        explain(field_of(region, "comm"), FENCE, REGION_IS_CLOSED, 0)
        raise Failure


@attribute(RegionType, "count")
def _count(region):
    return lambda region: field_of(region, "view").size


@attribute(RegionType, "nbytes")
def _nbytes(region):
    return lambda region: field_of(region, "view").nbytes


@attribute(RegionType, "shape")
def _shape(region):
    return lambda region: field_of(region, "view").shape


@method(RegionType, "as_slice")
def _as_slice(region):
    def as_slice(region):
        _check_open(region)
        return field_of(region, "view")

    return as_slice


@method(RegionType, "part")
def _part(region, start, stop):
    if not is_integer(start) or not is_integer(stop):
        problem = f"part: start and stop must be integers, got {start} and {stop}"

        def refuse(region, start, stop):
            raise TypeError(problem)

        return refuse
    to_first, to_last = integer_reader(start), integer_reader(stop)

    def part(region, start, stop):
        _check_open(region)
        memory = _writable(region)
        first, last = to_first(start), to_last(stop)
        if not 0 <= first <= last <= len(memory):
            bounds = in_frame((first, last))
            explain(field_of(region, "comm"), REGION_PART, len(memory), bounds)
            raise Failure
        return memory[first:last]

    return part


@collective_method("fence", RegionType)
def _fence(region):
    synchronises = region.synchronises

    def fence(region):
        _check_open(region)
        record = field_of(region, "comm")
        if synchronises and field_of(region, "is_shared"):
            call = Barrier(FENCE, field_of(region, "state").identity)
            outcome = run(record.collectives[BARRIER].entry, record, call)
        else:
            outcome = standing(record)
        if outcome != OK:
            explain(record, FENCE, outcome, 0)
            raise Failure

    return fence
