"""allgather: the blocks of all ranks, of one length, in rank order."""

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.reference import (
    STRUCTURED,
    among_sentinels,
    assert_same_bytes,
    block,
    sentinels,
)

LENGTHS = [0, 1, 12, 13, 1000, 6001]


def gather(comm, caller, dtype, count, seed=0):
    everyone = np.concatenate([block(dtype, r, count, seed) for r in range(comm.size)])
    recv = sentinels(dtype, (comm.size, count))
    send = among_sentinels(block(dtype, comm.rank, count, seed))
    calls(caller, comm.rank).allgather(comm, send, recv)
    assert_same_bytes(recv, everyone.reshape(comm.size, count))
    assert_same_bytes(send, block(dtype, comm.rank, count, seed))


def gather_in_place(comm, caller, count):
    """Each rank sends its own block of recv, in place."""
    everyone = np.stack([block("f8", r, count) for r in range(comm.size)])
    recv = sentinels("f8", everyone.shape)
    recv[comm.rank] = everyone[comm.rank]
    calls(caller, comm.rank).allgather(comm, recv[comm.rank], recv)
    assert_same_bytes(recv, everyone)


CASES = [
    Case(
        "lengths", gather, {"dtype": ["f8"], "count": [Together(LENGTHS)]}, callers=EVERY,
        buffers=("default", "small"), check=QUICK,
    ),
    Case("dtypes", gather, {"dtype": ["?", "i2", "c16", STRUCTURED], "count": [13]}),
    Case("own_block_in_place", gather_in_place, {"count": [Together(LENGTHS[1:])]}),
]  # fmt: skip
