"""A rank that has claimed an item of a work is killed, stopped or late."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.jit.types import WorkType
from cobre_comm.testing.cases.raised import met, raises
from cobre_comm.testing.cases.work import CLAIM
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.grid import slow, timeout_of

BACKENDS = ["shm", "tcp", "tcp:0,0,1,1"]
COUNT, VICTIM = 40, 1
LIMIT_S, PAUSE_S = 1.0, 3.0

both_callers = pytest.mark.parametrize("caller", ["njit", slow("python")])


def begin(comm, caller):
    """Make a work; the victim claims an item. Return how to claim, work, region and that item."""
    claim, work, done = CLAIM[caller], comm.create_work(COUNT), comm.create_shared_region(COUNT)
    item = claim(work) if comm.rank == VICTIM else None
    comm.barrier()
    return claim, work, done, item


def compile_claim(caller):
    """Compile the claim before ranks are forked, so that no limit counts the time of compiling."""
    if caller == "njit":
        CLAIM[caller].compile((WorkType(),))


def claim_rest(comm, claim, work, done):
    """Claim items until none is left; check that no rank of this node has had the same item."""
    while (item := claim(work)) >= 0:
        mine = done.part(item, item + 1)
        mine += 1
        assert mine == [1], f"item {item} comes twice"
        time.sleep(0.001)  # so that every rank gets some items


def stop_for(seconds):
    """Stop this process; another process continues it."""
    command = f"sleep {seconds}; kill -CONT {os.getpid()}"
    with subprocess.Popen(["sh", "-c", command]):
        os.kill(os.getpid(), signal.SIGSTOP)


PAUSES = {"late": time.sleep, "stopped": stop_for}


def dies(comm, caller):
    """The victim dies with its item; all others continue to claim, and then name the victim."""
    claim, work, done, _ = begin(comm, caller)
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    claim_rest(comm, claim, work, done)
    error = raises(CollectiveFailed, work.reset)
    assert error.ranks == (VICTIM,)
    assert "broke in an earlier collective" in str(raises(InvalidCommunicator, claim, work))


def keeps(comm, caller, how):
    """The victim keeps its item beyond the limit; all others continue, and then name the victim."""
    claim, work, done, _ = begin(comm, caller)
    if comm.rank == VICTIM:
        PAUSES[how](PAUSE_S)
        met(work.reset)  # this reset may succeed, because all other ranks had entered it
        raises((CollectiveFailed, InvalidCommunicator), comm.barrier)
        return
    claim_rest(comm, claim, work, done)
    assert raises(CollectiveFailed, work.reset).ranks == (VICTIM,)


def pauses(comm, caller, how):
    """The victim is late with its item, but by less than the limit."""
    claim, work, done, item = begin(comm, caller)
    if comm.rank == VICTIM:
        PAUSES[how](0.3)
        done.part(item, item + 1)[:] += 1
    claim_rest(comm, claim, work, done)
    done.fence()
    each = np.zeros(COUNT)
    comm.allreduce(done.as_slice() if comm.is_leader else np.zeros(COUNT), each)
    assert (each == 1).all()


@pytest.mark.parametrize("backend", BACKENDS)
@both_callers
def test_a_rank_that_dies_with_an_item_is_named(backend, caller):
    """The item of the rank that dies is lost; in the next collective all others name this rank."""
    compile_claim(caller)
    outcomes = forked.ranks(backend, 4, dies, caller)
    assert outcomes.pop(VICTIM).exit_code == -signal.SIGKILL
    values_of(outcomes)


@pytest.mark.parametrize("backend", BACKENDS)
@both_callers
@pytest.mark.parametrize("how", PAUSES)
def test_a_rank_that_keeps_an_item_for_too_long_is_named(backend, caller, how):
    """The others continue to claim items, and name the rank in the next collective."""
    compile_claim(caller)
    values_of(forked.ranks(backend, 4, keeps, caller, how, env=timeout_of(LIMIT_S)))


@pytest.mark.parametrize("backend", BACKENDS)
@both_callers
@pytest.mark.parametrize("how", PAUSES)
def test_a_rank_that_pauses_with_an_item_finishes_it(backend, caller, how):
    """No other rank gets the item of the rank that pauses, and each item is done once."""
    compile_claim(caller)
    values_of(forked.ranks(backend, 4, pauses, caller, how))
