"""Ranks die at any moment, and survivors continue: a few losses of ``tests.campaign.shrink``."""

import pathlib
import signal

import pytest

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.testing.cases.waiting import await_all, wait_until
from tests import forked
from tests.campaign import shrink
from tests.campaign.__main__ import warm
from tests.forked import in_private_shm
from tests.grid import slow, some, timeout_of

SIZE, DEAD, ASTRAY = 4, 3, 0
DAILY = [("shm", 5), ("tcp:0,1,1,2", 5)]
EACH = [(backend, count) for backend in shrink.BACKENDS for count in (5, 200)]


def losses(seed, backend, count):
    """Perform drawn losses in a new process, in which they cannot disturb other tests."""
    for number in range(count):
        loss = shrink.draw(seed, number, (backend,))
        problems, _ = shrink.perform(loss)
        assert not problems, (number, loss, problems)


@pytest.mark.parametrize(("backend", "count"), some(DAILY, EACH))
@pytest.mark.timeout(600)
def test_losses(backend, count):
    warm()
    in_private_shm("1g", losses, 3, backend, count)


def at_each_moment(backend, size, step):
    """When rank 0 has died, kill each other rank at many moments of its shrink."""
    first = shrink.Death(shrink.COLLECTIVE, 0.0)
    for victim in range(1, size):
        for moment in range(1, LAST_MOMENT, step):
            deaths = {0: first, victim: shrink.Death(shrink.SHRINK, moment)}
            loss = shrink.Loss(backend, size, "python", deaths, {}, moment)
            problems, _ = shrink.perform(loss)
            assert not problems, (loss, problems)


LAST_MOMENT = 1500


@pytest.mark.parametrize("backend", [slow("shm"), slow("tcp-flat"), "tcp:0,0,1,1"])
@pytest.mark.parametrize("step", [499, slow(13)])
@pytest.mark.timeout(900)
def test_each_moment(backend, step):
    warm()
    in_private_shm("1g", at_each_moment, backend, 3, step)


def calls_without_one(comm, folder):
    """One rank dies, and another rank does not call shrink; return the errors of the others.

    No rank ends before all others have their errors.
    """
    folder = pathlib.Path(folder)
    await_all(folder, comm.rank, comm.size)  # otherwise a rank may die while another still connects
    if comm.rank == DEAD:
        signal.raise_signal(signal.SIGKILL)
    told = None
    try:
        while True:
            comm.barrier()
    except CollectiveFailed:
        pass
    if comm.rank != ASTRAY:
        with pytest.raises(CollectiveFailed) as failed:
            comm.shrink()
        with pytest.raises(InvalidCommunicator) as again:
            comm.shrink()
        told = str(failed.value).splitlines()[0], failed.value.ranks, str(again.value)
    (folder / f"told-{comm.rank}").touch()
    wait_until(lambda: len(list(folder.glob("told-*"))) == SIZE - 1)
    return told


@pytest.mark.parametrize("backend", ["shm", "tcp", "tcp-flat", slow("tcp:0,0,1,1")])
def test_all_survivors_name_the_rank_that_does_not_call(backend, tmp_path):
    """Errors name neither dead nor calling ranks; a second call raises the same error."""
    outcomes = forked.ranks(
        backend, SIZE, calls_without_one, str(tmp_path), env=timeout_of(2), timeout_s=120
    )
    assert outcomes[1].ok, outcomes[1].describe()
    sentence, ranks, again = outcomes[1].value
    assert outcomes[2].value == (sentence, ranks, again)
    assert ranks == (ASTRAY,)
    assert f"rank {ASTRAY} did not call shrink within" in sentence
    assert ("COBRE_SHM_TIMEOUT_SECS" if backend == "shm" else "COBRE_TCP_TIMEOUT_SECS") in sentence
    assert "the shrink of this communicator has failed" in again
    assert f"rank {ASTRAY} did not call shrink within" in again
