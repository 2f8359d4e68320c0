"""What ranks do where a test of ``cobre-comm check`` plants something wrong."""

import time

from cobre_comm.check import bits

PLANTED = "SUM of 13 float64"


def wrong_digest_on_the_last(comm, caller, what, dtypes):
    digests = bits.digests(comm, caller, what, dtypes)
    if comm.rank == comm.size - 1 and PLANTED in digests:
        digests[PLANTED] = "planted"
    return digests


def fails(comm):
    raise ArithmeticError(f"rank {comm.rank} [/] of {comm.size}")


def hangs_in_here(comm):
    time.sleep(100)
