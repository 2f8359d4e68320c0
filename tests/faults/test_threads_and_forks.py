"""Two threads on one communicator, and processes forked from a rank."""

import pytest

from tests.faults import bodies, process_bodies


def test_second_thread_is_refused(pools, backend, caller):
    told = pools.get(backend, 2).run(process_bodies.two_threads, caller)[0]
    assert len(told) == len(bodies.OPERATIONS) + 1
    assert all("thread" in text for text in told)


def test_each_thread_its_own_communicator(pools, caller):
    pools.get("shm", 2).run(process_bodies.threads_with_their_own, caller, 200)


@pytest.mark.parametrize("size", [1, 2])
def test_forked_child(pools, backend, caller, size, tmp_path):
    values = pools.get(backend, size).run(process_bodies.forked, caller, str(tmp_path), fresh=True)
    for status, told in values:
        assert status == 0
        assert len(told) == len(bodies.OPERATIONS) + 3
        assert all("fork" in text for text in told)
