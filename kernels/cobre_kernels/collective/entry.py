"""The entries: how every collective of every backend begins and ends.

An entry acquires the communicator, checks the arguments, notes the call, runs the body of the
backend by its address, and ends the collective. A body contains nothing but the algorithm. It finds
the arguments in the call, and the words that ranks compare in the communicator's record
(``calls.called``).
"""

from typing import NamedTuple

from cobre_kernels.collective import checks
from cobre_kernels.collective.calls import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    GATHERV,
    Allgatherv,
    Allreduce,
    Barrier,
    BodyStatus,
    Broadcast,
    Gatherv,
    Refusal,
    contribution_bytes,
    signature_of,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.guard import acquire, release
from cobre_kernels.collective.reduction.fold import fold, gives_truth
from cobre_kernels.collective.seeing.journal import note_call, note_left
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.stop import mark_of
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.float_mode import leave_float_mode, return_to_float_mode
from cobre_kernels.machine.kernel import kernel, run, run_alone


class Amount(NamedTuple):
    """This rank's contribution: its number of elements, and their bytes."""

    count: int
    size_bytes: int


@kernel(COMM, Barrier)
def barrier_entry(comm, call):
    """Return when all ranks have entered with the two words of this call."""
    outcome = acquire(comm)
    if outcome == OK and begin(comm, OK, call.signature, call.compared, Amount(0, 0)):
        outcome = end(comm, run(comm.collectives[BARRIER].body, comm, call))
    return outcome


@kernel(COMM, Broadcast)
def broadcast_entry(comm, call):
    """Replace the bytes at ``buffer`` by those of the root."""
    outcome = acquire(comm)
    if outcome == OK:
        outcome = checks.check_broadcast(comm, call)
        signature = signature_of(BROADCAST, call.dtype, call.root)
        amount = Amount(call.size_bytes, call.size_bytes)
        if begin(comm, outcome, signature, call.size_bytes, amount):
            outcome = end(comm, run(comm.collectives[BROADCAST].body, comm, call))
    return outcome


@kernel(COMM, Allreduce)
def allreduce_entry(comm, call):
    """Write to ``recv`` the fold of all ranks' ``send``, in rank order."""
    outcome = acquire(comm)
    if outcome == OK:
        outcome = checks.check_allreduce(call)
        signature = signature_of(ALLREDUCE, call.dtype, call.op)
        amount = Amount(call.send_count, contribution_bytes(call))
        if begin(comm, outcome, signature, amount.size_bytes, amount):
            mode = leave_float_mode()  # the body may fold
            outcome = run(comm.collectives[ALLREDUCE].body, comm, call)
            if gives_truth(call.op) and comm.size == 1 and outcome == OK:
                fold(comm, call, call.recv, call.recv, amount.size_bytes)  # elements become 0 or 1
            return_to_float_mode(mode)
            outcome = end(comm, outcome)
    return outcome


@kernel(COMM, Allgatherv)
def allgatherv_entry(comm, call):
    """Write the blocks of all ranks to ``recv``."""
    outcome = acquire(comm)
    if outcome == OK:
        outcome = checks.check_allgatherv(comm, call)
        signature = signature_of(ALLGATHERV, call.dtype, 0)
        tables = checks.hash_tables(comm, call) if outcome == OK else 0
        amount = Amount(call.send_count, contribution_bytes(call))
        if begin(comm, outcome, signature, tables, amount):
            outcome = end(comm, run(comm.collectives[ALLGATHERV].body, comm, call))
    return outcome


@kernel(COMM, Gatherv)
def gatherv_entry(comm, call):
    """On the root, write the blocks of all ranks to ``recv``."""
    outcome = acquire(comm)
    if outcome == OK:
        outcome = checks.check_gatherv(comm, call)
        signature = signature_of(GATHERV, call.dtype, call.root)
        amount = Amount(call.send_count, contribution_bytes(call))
        if begin(comm, outcome, signature, call.itemsize, amount):
            outcome = end(comm, run(comm.collectives[GATHERV].body, comm, call))
    return outcome


@routine(forceinline=True)
def begin(comm, outcome, signature, compared, amount):
    """Note the call, and tell whether its body may run; if it may not, release the communicator."""
    if outcome != OK:
        run(comm.refuse, comm, Refusal(signature & 0xFF, outcome, 1))
        return False
    comm.signature = signature | mark_of(comm, signature) | comm.own
    comm.compared = compared
    comm.count = amount.count
    note_call(comm, amount.size_bytes)
    comm.thread = libc.release_gil() if comm.gives_gil != 0 else 0
    return True


@routine(forceinline=True)
def end(comm, outcome):
    """Release the communicator for the next collective, or break it and tell the other ranks.

    This routine and :func:`begin` are inlined, which saves 8 of the 75 ns of a barrier. The end of
    a failed collective is not inlined, because ``fail`` is a kernel of its own.
    """
    if outcome != OK:
        return run(comm.fail, comm, BodyStatus(outcome))
    note_left(comm)
    if comm.trace_call != 0:
        run_alone(comm.trace_call, comm)
    libc.regain_gil(comm.thread)
    release(comm)
    return OK


# By the number of the operation.
ENTRIES = {
    BARRIER: barrier_entry,
    BROADCAST: broadcast_entry,
    ALLREDUCE: allreduce_entry,
    ALLGATHERV: allgatherv_entry,
    GATHERV: gatherv_entry,
}
