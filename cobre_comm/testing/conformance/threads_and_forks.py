"""Two threads on one communicator, and processes forked from a rank."""

import pytest

from cobre_comm.testing.conformance.bodies import lost, processes
from cobre_comm.testing.conformance.suite import Suite, needs


class ThreadAndForkTests(Suite):
    """Two threads on one communicator, and processes forked from a rank."""

    @needs("threads")
    def test_second_thread_is_refused(self, pools, backend, caller):
        told = pools.get(backend, 2).run(processes.two_threads, caller)[0]
        assert len(told) == len(lost.OPERATIONS) + 1
        assert all("thread" in text for text in told)

    @needs("forks", "regions", "split")
    @pytest.mark.parametrize("size", [1, 2])
    def test_forked_child(self, pools, backend, caller, size, tmp_path):
        values = pools.get(backend, size).run(processes.forked, caller, str(tmp_path), fresh=True)
        for status, told in values:
            assert status == 0
            assert len(told) == len(lost.OPERATIONS) + 3
            assert all("fork" in text for text in told)
