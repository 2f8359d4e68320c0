"""What a rank calls, packed into one word, so that ranks can compare it in one load.

Bits 0-7 the operation, 8-15 the dtype's code, 16-31 the ReduceOp or the root, 32-62 a hash of a
dtype that has no code.
"""

from numba import njit

BARRIER = 1
BROADCAST = 2
ALLREDUCE = 3
ALLGATHERV = 4
FENCE = 5
CREATE_REGION = 6
SPLIT = 7

OPERATIONS = {
    BARRIER: "barrier",
    BROADCAST: "broadcast",
    ALLREDUCE: "allreduce",
    ALLGATHERV: "allgatherv",
    FENCE: "fence",
    CREATE_REGION: "create_shared_region",
    SPLIT: "split_local",
}

HASH_MASK = 0x7FFFFFFF


@njit
def pack_kind(operation, dtype, argument):
    """Pack an operation, a dtype word (code + hash << 8) and a ReduceOp or root."""
    return operation | (dtype & 0xFF) << 8 | (argument & 0xFFFF) << 16 | (dtype >> 8) << 32


def unpack_kind(kind):
    """Return (operation name, dtype code, ReduceOp or root) of a packed kind."""
    return OPERATIONS.get(kind & 0xFF, "nothing"), kind >> 8 & 0xFF, kind >> 16 & 0xFFFF
