"""``rank``, ``size``, ``is_leader`` and ``stop_requested``, which wait for no other rank."""

from __future__ import annotations

from cobre_kernels.collective.calls import STOP
from cobre_kernels.machine.atomics import load_relaxed

from cobre_comm.jit.attributes import attribute, method
from cobre_comm.jit.records import check_usable, record_of
from cobre_comm.jit.types import CommType


@attribute(CommType, "rank")
def _rank(comm):
    if not comm.synchronises:
        return lambda comm: 0
    return lambda comm: record_of(comm).rank


@attribute(CommType, "size")
def _size(comm):
    if not comm.synchronises:
        return lambda comm: 1
    return lambda comm: record_of(comm).size


@attribute(CommType, "is_leader")
def _is_leader(comm):
    if not comm.synchronises:
        return lambda comm: True
    return lambda comm: record_of(comm).is_leader != 0


@method(CommType, "stop_requested")
def _stop_requested(comm):
    is_local = not comm.synchronises

    def stop_requested(comm):
        record = record_of(comm)
        check_usable(record)
        if is_local:  # whose collectives may have compiled to nothing
            return load_relaxed(record.stop.requested) != 0
        return record.signature & STOP != 0

    return stop_requested
