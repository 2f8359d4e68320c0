"""Attributes, ``stop_requested`` and ``enter_phase``, which wait for no rank."""

from __future__ import annotations

from cobre_kernels.collective import phases
from cobre_kernels.collective.calls import ENTER, STOP
from cobre_kernels.machine.atomics import load_relaxed

from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import integer_problem, integer_reader, refusal, refused
from cobre_comm.jit.attributes import attribute, method
from cobre_comm.jit.fields import check_usable, explain, record_of
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
        if is_local:  # here collectives may compile to nothing, and carry no request
            return load_relaxed(record.stop.requested) != 0
        return record.signature & STOP != 0

    return stop_requested


@method(CommType, "enter_phase", in_prange=False)
def _enter_phase(comm, number):
    problem = integer_problem("enter_phase", "number", number)
    if problem is not None:
        refuse = refusal(ENTER, problem)
        return lambda comm, number: refuse(comm)
    to_int = integer_reader(number)

    def enter_phase(comm, number):
        record = record_of(comm)
        before = phases.enter(record, to_int(number))
        if before < 0:
            refused(record, ENTER, -before)
            explain(record, ENTER, -before, 0)
            raise Failure
        return before

    return enter_phase
