"""A rank without a descriptor left tells and is told as any other: errors open and load nothing."""

import contextlib
import os
import pathlib
import resource
import signal
import time

import numpy as np
import pytest

from cobre_comm import AllocationFailed, CollectiveFailed
from cobre_comm.testing import run_ranks_outcomes
from tests.grid import slow

SHORT_S = {"COBRE_SHM_TIMEOUT_SECS": "2", "COBRE_TCP_TIMEOUT_SECS": "2"}
PATIENCE_S = 60.0
SHORT, ASTRAY = 1, 0  # the rank that has no descriptor left, and the one at fault
# Whether a rank shares memory with the one that is short of descriptors.
BACKENDS = {"shm": True, "tcp": True, "tcp:0,0,1": True, "tcp-flat": False}


@contextlib.contextmanager
def no_descriptor_left():
    """Take all descriptors that this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(path.name) for path in pathlib.Path("/proc/self/fd").iterdir()) + 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    held = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def make_region(comm, is_shared):
    """Make a first region, which only ranks with a descriptor can; then the ranks go on."""
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


def wait_for_one(comm, how, folder):
    """Wait for a rank that dies, is late or calls something else; return what is raised."""
    done = pathlib.Path(folder, "done")
    comm.barrier()
    with no_descriptor_left() if comm.rank == SHORT else contextlib.nullcontext():
        if comm.rank == ASTRAY and how == "killed":
            signal.raise_signal(signal.SIGKILL)
        if comm.rank == ASTRAY and how == "late":
            deadline = time.monotonic() + PATIENCE_S
            while not done.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            return None
        with pytest.raises(CollectiveFailed) as failed:
            comm.sum(1) if comm.rank == ASTRAY else comm.barrier()
    done.touch()
    return failed.value.ranks, str(failed.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_region_is_refused_on_all_ranks(backend):
    is_shared = BACKENDS[backend]
    outcomes = run_ranks_outcomes(backend, 3, make_region, is_shared, timeout_s=PATIENCE_S)
    assert all(outcome.ok for outcome in outcomes), outcomes
    assert {f"rank {SHORT}:" in outcome.value for outcome in outcomes} == {is_shared}


@pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("tcp:0,0,1"), "tcp-flat"])
@pytest.mark.parametrize("how", ["killed", "late", "other"])
def test_the_rank_at_fault_is_named(backend, how, tmp_path):
    outcomes = run_ranks_outcomes(
        backend, 3, wait_for_one, how, str(tmp_path), env=SHORT_S, timeout_s=PATIENCE_S
    )
    short = outcomes[SHORT]
    assert short.ok, outcomes
    ranks, sentence = short.value
    assert ranks == (ASTRAY,), sentence
