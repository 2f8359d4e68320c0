"""Sockets take little at a time: results are right, or errors are true."""

import itertools

import pytest

from cobre_comm import CollectiveFailed
from tests.backends.tcp import stress_bodies as bodies
from tests.grid import values

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

DEFAULT_EAGER_BYTES = 65536
GRID = list(itertools.product([2, 3, 4, 5], [0, 100, 4096, DEFAULT_EAGER_BYTES]))
SOON_S = 20.0  # long before the timeout, on a busy machine too


def settings(eager_bytes):
    return {"COBRE_TCP_EAGER_BYTES": str(eager_bytes)}


@pytest.mark.parametrize(("size", "eager_bytes"), GRID)
def test_small_sockets(pools, size, eager_bytes):
    pool, env = pools.get("tcp-flat", size), settings(eager_bytes)
    for seed in range(100, 105):
        pool.run(bodies.work, seed, 40, env=env, fresh=True)


@pytest.mark.parametrize("size", [2, 3])
def test_a_few_bytes_at_a_time(pools, size):
    for eager_bytes in (0, 4096):
        pool = pools.get("tcp-flat", size)
        pool.run(bodies.work_by_bytes, size, 25, env=settings(eager_bytes), fresh=True)


def test_failure_report_a_few_bytes_at_a_time(pools):
    for text in pools.get("tcp-flat", 3).run(bodies.failure_report_by_bytes, 1, fresh=True):
        assert "rank 1 called allreduce(SUM, float64, 6 elements)" in text


@pytest.mark.parametrize("size", [2, 3])
def test_disagreement_about_large_payloads(pools, caller, size):
    """No rank reads the rest, so no rank may wait until it is sent."""
    pool, env = pools.get("tcp-flat", size), settings(2**26)
    for error, took_s in pool.run(bodies.disagree, caller, 1_000_000, env=env, fresh=True):
        assert isinstance(error, CollectiveFailed)
        assert "disagree" in str(error)
        assert took_s < SOON_S


def test_interrupt_while_bytes_come(pools, caller):
    arguments = bodies.interrupted_while_bytes_come, caller, 100_000, 0.5
    values = pools.get("tcp-flat", 3).run(*arguments, env=settings(100), fresh=True)
    caught, took_s = values[1]
    assert isinstance(caught, KeyboardInterrupt)
    assert took_s < SOON_S
    for rank in (0, 2):
        assert values[rank][0].ranks == (1,)


@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_control_message_that_came_before_the_step(pools, tmp_path, how):
    """Rank 1 knows of the loss when it enters, and does not wait for rank 0, which is late."""
    arguments = bodies.gone_before_the_next, how, str(tmp_path / "met")
    rank_0_waited_for_rank_1, error, _ = pools.get("tcp-flat", 3).run(*arguments, fresh=True)
    assert rank_0_waited_for_rank_1
    assert error.ranks == (2,)


def test_no_memory_for_the_inboxes():
    assert all("eager_bytes" in text for text in values("tcp-flat", 2, bodies.no_memory))
