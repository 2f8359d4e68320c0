"""Ranks die at any moment, and the survivors go on: a few losses of ``tests.campaign.shrink``."""

import pytest

from tests.campaign import shrink
from tests.faults.shm.private_shm import in_private_shm
from tests.grid import slow


def losses(seed, backend, count):
    """Perform drawn losses in a process of their own, where they cannot disturb other tests."""
    shrink.warm()
    for number in range(count):
        loss = shrink.draw(seed, number, (backend,))
        problems, _ = shrink.perform(loss)
        assert not problems, (number, loss, problems)


@pytest.mark.parametrize("backend", shrink.BACKENDS)
@pytest.mark.parametrize("count", [5, slow(200)])
@pytest.mark.timeout(600)
def test_losses(backend, count):
    in_private_shm("1g", losses, 3, backend, count)


def at_each_moment(backend, size, step):
    """Kill each rank at every n-th call of its shrink, after another one has died."""
    shrink.warm()
    first = shrink.Death(shrink.COLLECTIVE, 0.0)
    for victim in range(1, size):
        for moment in range(1, LAST_MOMENT, step):
            deaths = {0: first, victim: shrink.Death(shrink.SHRINK, moment)}
            loss = shrink.Loss(backend, size, "python", deaths, {}, moment)
            problems, _ = shrink.perform(loss)
            assert not problems, (loss, problems)


LAST_MOMENT = 1500


@pytest.mark.parametrize("backend", ["shm", "tcp-flat", "tcp:0,0,1,1"])
@pytest.mark.parametrize("step", [499, slow(13)])
@pytest.mark.timeout(900)
def test_each_moment(backend, step):
    in_private_shm("1g", at_each_moment, backend, 3, step)
