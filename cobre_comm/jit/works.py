"""Shared-out work in ``@njit`` code: claims, the number of items, and the items of this node."""

from __future__ import annotations

from cobre_kernels.collective.calls import CLAIM
from cobre_kernels.collective.work import NOTHING_LEFT, claim

from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import refused
from cobre_comm.jit.attributes import attribute, method
from cobre_comm.jit.fields import explain, field_of
from cobre_comm.jit.types import WorkType


@attribute(WorkType, "count")
def _count(work):
    return lambda work: field_of(work, "state").count


@attribute(WorkType, "start")
def _start(work):
    return lambda work: field_of(work, "state").first


@attribute(WorkType, "stop")
def _stop(work):
    return lambda work: field_of(work, "state").last


@method(WorkType, "claim")
def _claim(work):
    def claim_item(work):
        item = claim(field_of(work, "state"))
        if item < NOTHING_LEFT:
            record = field_of(work, "comm")
            refused(record, CLAIM, -item)
            explain(record, CLAIM, -item, 0)
            raise Failure
        return item

    return claim_item
