"""A rank with no free descriptor gets the usual errors: raising them opens and loads nothing."""

import contextlib

import numpy as np
import pytest

from cobre_comm import AllocationFailed
from tests import forked
from tests.faults.odd import no_descriptor_left, wait_for_one
from tests.grid import slow, timeout_of

SHORT, ASTRAY = 1, 0  # the rank that has no descriptor left, and the rank at fault
# Whether the ranks share memory with the rank that has no descriptor left.
BACKENDS = {"shm": True, "tcp": True, "tcp:0,0,1": True, "tcp-flat": False}


def make_region(comm, is_shared):
    """Make a first region, which needs a descriptor if ranks share it; then all ranks continue."""
    comm.barrier()
    with no_descriptor_left() if comm.rank == SHORT else contextlib.nullcontext():
        expected = pytest.raises(AllocationFailed) if is_shared else contextlib.nullcontext()
        with expected as failed:
            comm.create_shared_region(100_000)
        total = np.empty(1)
        comm.allreduce(np.ones(1), total)
        assert total[0] == comm.size
    region = comm.create_shared_region(10)
    region.fence()
    return str(failed.value) if is_shared else ""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_region_is_refused_on_all_ranks(backend):
    is_shared = BACKENDS[backend]
    outcomes = forked.ranks(backend, 3, make_region, is_shared)
    assert all(outcome.ok for outcome in outcomes), outcomes
    assert {f"rank {SHORT}:" in outcome.value for outcome in outcomes} == {is_shared}


@pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("tcp:0,0,1"), "tcp-flat"])
@pytest.mark.parametrize("how", ["killed", "late", "other"])
def test_the_rank_at_fault_is_named(backend, how, tmp_path):
    told = how, ASTRAY, SHORT, no_descriptor_left, str(tmp_path)
    outcomes = forked.ranks(backend, 3, wait_for_one, *told, env=timeout_of(2))
    short = outcomes[SHORT]
    assert short.ok, outcomes
    ranks, sentence, _ = short.value
    assert ranks == (ASTRAY,), sentence
