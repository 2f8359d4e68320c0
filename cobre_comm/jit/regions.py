"""Shared regions in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective.calls import BARRIER, FENCE, REGION_BLOCK, Barrier
from cobre_kernels.collective.guard import usability
from cobre_kernels.collective.regions import is_closed
from cobre_kernels.collective.status import OK, REGION_IS_CLOSED
from cobre_kernels.machine.kernel import run
from numba.extending import overload_attribute, register_jitable

from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import integer_reader, is_integer
from cobre_comm.jit.attributes import collective_method, method
from cobre_comm.jit.records import explain, region_field
from cobre_comm.jit.types import BorrowedRegion


@register_jitable
def _check_open(region):
    """Raise if this rank has closed the region; views of it live on."""
    if is_closed(region_field(region, "state")):
        explain(region_field(region, "comm"), FENCE, REGION_IS_CLOSED, 0, 0)
        raise Failure


@overload_attribute(BorrowedRegion, "count")
def _count(region):
    return lambda region: region_field(region, "view").size


@overload_attribute(BorrowedRegion, "nbytes")
def _nbytes(region):
    return lambda region: region_field(region, "view").nbytes


@method(BorrowedRegion, "as_slice")
def _as_slice(region):
    def as_slice(region):
        _check_open(region)
        return region_field(region, "view")

    return as_slice


@method(BorrowedRegion, "block")
def _block(region, start, stop):
    if not is_integer(start) or not is_integer(stop):
        problem = f"block: start and stop must be integers, got {start} and {stop}"

        def refuse(region, start, stop):
            raise TypeError(problem)

        return refuse
    to_first, to_last = integer_reader(start), integer_reader(stop)

    def block(region, start, stop):
        _check_open(region)
        memory = region_field(region, "memory")
        first, last = to_first(start), to_last(stop)
        if not 0 <= first <= last <= memory.size:
            explain(region_field(region, "comm"), REGION_BLOCK, memory.size, first, last)
            raise Failure
        return memory[first:last]

    return block


@collective_method("fence", BorrowedRegion)
def _fence(region):
    synchronises = region.synchronises

    def fence(region):
        _check_open(region)
        record = region_field(region, "comm")
        if synchronises:
            call = Barrier(FENCE, region_field(region, "state").identity)
            outcome = run(record.collectives[BARRIER].entry, record, call)
        else:
            outcome = usability(record)
        if outcome != OK:
            explain(record, FENCE, outcome, 0, 0)
            raise Failure

    return fence
