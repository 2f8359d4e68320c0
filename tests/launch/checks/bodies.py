"""What ranks do where a test of ``cobre-comm check`` plants something wrong."""

import time

from cobre_comm.testing.cases.mixed import bits


def wrong_on_the_last(comm, caller, seeds, longest):
    digest = bits.reduce_all(comm, caller, seeds, longest)
    return "planted" if comm.rank == comm.size - 1 else digest


def fails(comm):
    raise ArithmeticError(f"rank {comm.rank} [/] of {comm.size}")


def hangs_in_here(comm):
    time.sleep(100)
