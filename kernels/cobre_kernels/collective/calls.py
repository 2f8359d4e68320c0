"""Calls: the arguments of a collective as one value, and its signature as one word.

This file alone defines which fields a call has. The fast path and the slow path from Python, the
methods in ``@njit`` code, the checks, the entries and the bodies all use these classes. Addresses,
counts and codes are int64; counts and displacements are in elements.

A signature says in one word what a rank called, so ranks compare their calls by one load::

    bits 0-7      the operation
    bits 8-15     the code of the dtype
    bits 16-31    the ReduceOp, or the root
    bits 32-39    if bit 61 is set, an index of OWN_CALLS
    bits 40-60    a hash of a dtype that has no code, or of the layout of a region
    bit 61        the library makes this call for itself
    bit 62        a rank is asked to stop (stop.py)
    bit 63        the rank's cell shows where its output lies (shm/region.py)
"""

from collections import namedtuple
from typing import NamedTuple

from cobre_kernels.collective.dtypes import EXACT
from cobre_kernels.machine.compiled import routine

BARRIER = 1
BROADCAST = 2
ALLREDUCE = 3
ALLGATHERV = 4
FENCE = 5
CREATE_REGION = 6
SPLIT = 7
EXACT_SUM = 8  # for entries, messages and the journal: an allreduce of EXACT
ALLGATHER = 9  # for messages alone: an allgatherv of equal blocks
GATHERV = 10
REGION_PART = 11  # for messages alone: no collective, but the bounds of a part of a region
SPLIT_COLOR = 12
CREATE_WORK = 13
RESET = 14
COSTS = 15
CLAIM = 16  # for messages alone: no collective, but a claim of an item
ENTER = 17  # for messages alone: no collective, but the entry into a phase
PHASE_NUMBER = 18  # for messages alone: no collective, but the naming of a phase

# Collectives, and other methods that messages name. The operations of a reduction, such as SUM, are
# in reduction/fold.py.
OPERATIONS = {
    BARRIER: "barrier",
    BROADCAST: "broadcast",
    ALLREDUCE: "allreduce",
    ALLGATHERV: "allgatherv",
    FENCE: "fence",
    CREATE_REGION: "create_shared_region",
    SPLIT: "split_local",
    EXACT_SUM: "exact_sum",
    ALLGATHER: "allgather",
    GATHERV: "gatherv",
    REGION_PART: "part",
    SPLIT_COLOR: "split",
    CREATE_WORK: "create_work",
    RESET: "reset",
    COSTS: "measured_costs",
    CLAIM: "claim",
    ENTER: "enter_phase",
    PHASE_NUMBER: "phase_number",
}

HASH_MASK = 0x1FFFFF
HASH_SHIFT = 40
OWN = 1 << 61
STOP = 1 << 62
CALLED = STOP - 1  # the part of a signature that says what was called


# Calls of mpi4py that our collectives serve. Several of these calls use the same collective, so the
# collective alone does not show which of them a rank has made.
_OF_MPI4PY = (
    "Scatter", "Alltoall", "Dup", "Win.Allocate", "Win.Allocate_shared",
    "bcast", "scatter", "gather", "allgather", "alltoall",
)  # fmt: skip
_REDUCTIONS = (
    "Allreduce", "Reduce", "Reduce_scatter", "Scan", "Exscan",
    "allreduce", "reduce", "scan", "exscan",
)  # fmt: skip
_OPS_OF_MPI4PY = (
    "SUM", "PROD", "MIN", "MAX", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR", "REPLACE", "NO_OP",
    "MINLOC", "MAXLOC", "OP_USER",
)  # fmt: skip

# Methods that call collectives for themselves. The signature of such a collective has the method's
# index in this list.
OWN_CALLS = (
    "create_shared_region",
    "create_work",
    "measured_costs",
    "split",
    "split_local",
    "objects.broadcast",
    "objects.gather",
    "objects.allgather",
    *(f"mpi4py.{call}" for call in _OF_MPI4PY),
    *(f"mpi4py.{call}({op})" for call in _REDUCTIONS for op in _OPS_OF_MPI4PY),
)


def own_mark(name):
    """Return the bits that mark the signature of a call that the library makes for itself."""
    return OWN | OWN_CALLS.index(name) << 32


def own_call(signature):
    """Return the method for which the library makes a call; "" if the program makes the call."""
    return OWN_CALLS[signature >> 32 & 0xFF] if signature & OWN else ""


class Barrier(NamedTuple):
    """A barrier, or any other agreement that moves no data."""

    signature: int
    compared: int


class Broadcast(NamedTuple):
    """A broadcast of ``size_bytes`` bytes."""

    buffer: int
    size_bytes: int
    dtype: int
    root: int


class Allreduce(NamedTuple):
    """An allreduce; ``send`` and ``recv`` are addresses."""

    send: int
    send_count: int
    recv: int
    recv_count: int
    itemsize: int
    dtype: int
    op: int


class Allgatherv(NamedTuple):
    """An allgatherv; ``counts`` and ``displs`` are addresses of tables of int64."""

    send: int
    send_count: int
    recv: int
    recv_count: int
    itemsize: int
    dtype: int
    counts: int
    displs: int
    counts_len: int
    displs_len: int


# A gatherv; ``recv`` and the tables matter on the root alone.
Gatherv = namedtuple("Gatherv", (*Allgatherv._fields, "root"))


class ExactSum(NamedTuple):
    """An exact sum of ``count`` values; ``digits`` is the address of WORDS int64 that are zero."""

    values: int
    count: int
    dtype: int
    digits: int


# By operation, the calls that move data. Their signatures have a dtype, and a ReduceOp or a root.
DATA_CALLS = {
    BROADCAST: Broadcast,
    ALLREDUCE: Allreduce,
    ALLGATHERV: Allgatherv,
    GATHERV: Gatherv,
}


class Refusal(NamedTuple):
    """A call that was refused before any communication; its operation is 0 if that is not known."""

    operation: int
    status: int
    is_owner: int  # 1: this thread has acquired the communicator


class ShownWords(NamedTuple):
    """The words that a rank shows to the other ranks of its node in a step."""

    signature: int
    compared: int
    count: int


class BodyStatus(NamedTuple):
    """The status that a body has returned, as the call of kernels that act on the status."""

    status: int


@routine
def signature_of(operation, dtype, argument):
    """Pack an operation, a dtype word (code + hash << 8) and a ReduceOp or root."""
    return operation | (dtype & 0xFF) << 8 | (argument & 0xFFFF) << 16 | (dtype >> 8) << HASH_SHIFT


@routine
def called(comm):
    """Return the words of the call under way that this rank shows."""
    return ShownWords(comm.signature, comm.compared, comm.count)


@routine
def contribution_bytes(call):
    """Return the bytes that this rank contributes, by its ``send``."""
    return call.send_count * call.itemsize


def unpack_signature(signature):
    """Return (operation name, dtype code, ReduceOp or root) of a signature."""
    operation, dtype = signature & 0xFF, signature >> 8 & 0xFF
    if operation == ALLREDUCE and dtype == EXACT:
        operation = EXACT_SUM
    return OPERATIONS.get(operation, "nothing"), dtype, signature >> 16 & 0xFFFF
