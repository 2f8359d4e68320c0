"""Kernels find every region of a process, however many there are."""

import numpy as np
import pytest
from cobre_kernels.collective.regions import ROWS

from cobre_comm import AllocationFailed, ReduceOp
from cobre_comm.backends.region_table import REGION_TABLE

MANY = 1100


@pytest.mark.ranks(2, backends=["shm"])
def test_two_ranks_reduce_into_one_output_in_the_last_of_many_regions(comm):
    """If a kernel did not find the last region, both ranks would fold into the output together."""
    regions = [comm.create_shared_region(60_000 if n == MANY - 1 else 1) for n in range(MANY)]
    for count in (1, 600, 60_000):  # in a cell, in a slot, and block by block
        output = regions[-1].part(0, count)
        for _ in range(200):
            comm.allreduce(np.full(count, 1.0 + comm.rank), output, ReduceOp.SUM)
            wrong = comm.max(int((output != 3.0).sum()))
            assert wrong == 0
    rows = REGION_TABLE._used
    regions.clear()
    with comm.create_shared_region(1):  # takes a row of the table that has become free
        assert REGION_TABLE._used == rows


@pytest.mark.ranks(3, backends=["shm", "tcp"])
def test_a_region_without_a_row_is_refused_on_all_ranks(comm):
    free, used = REGION_TABLE._free, REGION_TABLE._used
    if comm.rank == 1:
        REGION_TABLE._free, REGION_TABLE._used = [], ROWS
    try:
        with pytest.raises(AllocationFailed, match=f"rank 1: .* more than {ROWS} regions"):
            comm.create_shared_region(1)
    finally:
        REGION_TABLE._free, REGION_TABLE._used = free, used
    with comm.create_shared_region(1) as region:
        output = region.part(0, 1)
        comm.allreduce(np.ones(1), output, ReduceOp.SUM)
        assert output[0] == comm.size
