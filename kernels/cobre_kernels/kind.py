"""What a rank calls, packed into one word, so that ranks can compare it in one load.

Bits 0-7 the operation, 8-15 the dtype's code, 16-31 the ReduceOp or the root, 32-62 a hash of a
dtype that has no code.
"""

from cobre_kernels.dtypes import EXACT
from cobre_kernels.routine import routine

BARRIER = 1
BROADCAST = 2
ALLREDUCE = 3
ALLGATHERV = 4
FENCE = 5
CREATE_REGION = 6
SPLIT = 7
EXACT_SUM = 8  # an allreduce of EXACT, for what the caller is told

OPERATIONS = {
    BARRIER: "barrier",
    BROADCAST: "broadcast",
    ALLREDUCE: "allreduce",
    ALLGATHERV: "allgatherv",
    FENCE: "fence",
    CREATE_REGION: "create_shared_region",
    SPLIT: "split_local",
    EXACT_SUM: "exact_sum",
}

HASH_MASK = 0x7FFFFFFF


@routine
def pack_kind(operation, dtype, argument):
    """Pack an operation, a dtype word (code + hash << 8) and a ReduceOp or root."""
    return operation | (dtype & 0xFF) << 8 | (argument & 0xFFFF) << 16 | (dtype >> 8) << 32


def unpack_kind(kind):
    """Return (operation name, dtype code, ReduceOp or root) of a packed kind."""
    operation, dtype = kind & 0xFF, kind >> 8 & 0xFF
    if operation == ALLREDUCE and dtype == EXACT:
        operation = EXACT_SUM
    return OPERATIONS.get(operation, "nothing"), dtype, kind >> 16 & 0xFFFF
