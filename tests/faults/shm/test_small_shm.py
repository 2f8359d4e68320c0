"""In a container with 64 MiB of /dev/shm, or almost none, ranks never get a bus error."""

import os
from functools import partial

import numpy as np
import pytest

from cobre_comm import AllocationFailed, InitializationFailed, ReduceOp, create_communicator
from cobre_comm.backends.shm import rendezvous
from cobre_comm.testing import leftovers
from cobre_comm.testing.cases.collectives import allgatherv, allreduce
from cobre_comm.testing.cases.memory import regions
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.forked import in_private_shm
from tests.grid import slow


def run(body, ranks, buffer_bytes=""):
    env = {"COBRE_SHM_BUFFER_BYTES": buffer_bytes}
    outcomes = forked.ranks("shm", ranks, body, connect=False, env=env, timeout_s=150)
    assert leftovers() == []
    return outcomes


def any_size(_):
    with create_communicator() as comm:
        for count in (1, 1000, 300_000):
            allgatherv.gather_equal(comm, "python", "f8", count)
            allreduce.reduce(comm, "python", "f8", ReduceOp.SUM, count)
        region_bytes = 1 << 20
        with comm.create_shared_region(region_bytes, np.uint8) as region:
            region.part(0, region_bytes)[comm.rank] = comm.rank + 1
            region.fence()
            assert region.as_slice()[: comm.size].tolist() == [r + 1 for r in range(comm.size)]
        del region
        regions.too_large(comm, "python", 10 * 2**20)
        for _ in range(3):  # memory that was given back can be used again
            half = comm.create_shared_region(20 * 2**20, np.uint8)
            half.part(0, half.count)[comm.rank :: comm.size] = 1
            half.fence()
            assert half.as_slice().min() == 1
            half.close()
            del half
            comm.barrier()
        sequences.four_in_a_row(comm, "python")


@pytest.mark.parametrize("ranks", [2, slow(16)])
def test_default_container(ranks):
    values_of(in_private_shm("64m", run, any_size, ranks))


def hardly_any(_):
    rendezvous.START_TIMEOUT_S = 10.0  # otherwise ranks wait a minute for a rank 0 that has failed
    os.environ["COBRE_SHM_TIMEOUT_SECS"] = "10"
    with create_communicator() as comm:
        allgatherv.gather_equal(comm, "python", "f8", 50_000)
        raises(AllocationFailed, comm.create_shared_region, 2**18, np.float64)
        sequences.four_in_a_row(comm, "python")


@pytest.mark.parametrize("ranks", [1, slow(4)])
def test_one_mebibyte(ranks):
    outcomes = in_private_shm("1m", run, hardly_any, ranks)
    if not all(outcome.ok for outcome in outcomes):
        assert "bytes" in str(outcomes[0].exception)
        for outcome in outcomes:
            assert isinstance(outcome.exception, InitializationFailed), outcome.describe()


@pytest.mark.parametrize("ranks", [slow(1), 2, slow(4)])
def test_one_mebibyte_with_small_buffers(ranks):
    """Small buffers are the cure that InitializationFailed names."""
    values_of(in_private_shm("1m", run, hardly_any, ranks, "8192"))


def starts(_):
    create_communicator().close()


@pytest.mark.parametrize("backend", ["mpi-openmpi", "tcp"])
def test_a_rank_is_named_once(backend):
    """A node's ranks agree on a rank at fault, then all ranks; the error names that rank once."""
    env = {f"COBRE_{name}_BUFFER_BYTES": str(2**26) for name in ("SHM", "TCP")}
    start = partial(forked.ranks, connect=False, env=env, timeout_s=60)
    outcomes = in_private_shm("1m", start, backend, 2, starts)
    for outcome in outcomes:
        said = str(outcome.exception)
        assert isinstance(outcome.exception, InitializationFailed), said
        assert "rank 0: " in said
        assert "rank 0: rank 0" not in said
