"""Collectives of a single rank: they copy ``send`` to ``recv``, or do nothing."""

from cobre_kernels.collective.calls import (
    Allgatherv,
    Allreduce,
    Barrier,
    BodyStatus,
    Broadcast,
    Gatherv,
    contribution_bytes,
)
from cobre_kernels.collective.checks import block_of
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import copy_bytes
from cobre_kernels.machine.kernel import kernel


@kernel(COMM, Barrier)
def barrier_body(comm, call):
    """Return at once, because no other rank takes part."""
    return OK


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Return at once, because the buffer holds the root's bytes already."""
    return OK


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Copy ``send`` to ``recv``."""
    if call.send != call.recv:
        copy_bytes(call.recv, call.send, contribution_bytes(call))
    return OK


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Copy ``send`` to its block of ``recv``."""
    block = block_of(call, 0)
    if block != call.send:
        copy_bytes(block, call.send, contribution_bytes(call))
    return OK


@kernel(COMM, Gatherv)
def gatherv_body(comm, call):
    """Copy ``send`` to its block of ``recv``."""
    block = block_of(call, 0)
    if block != call.send:
        copy_bytes(block, call.send, contribution_bytes(call))
    return OK


@kernel(COMM, BodyStatus)
def abandon_body(comm, call):
    """Return at once, because there is no other rank to tell."""
    return OK
