"""Tests of sequences of collectives."""

import pytest

from cobre_comm.testing.conformance.bodies import sync
from cobre_comm.testing.conformance.suite import Suite


class SequenceTests(Suite):
    """Collectives in any order after one another."""

    def test_four_in_a_row(self, pool, caller):
        pool.run(sync.four_in_a_row, caller)

    def test_random_operations(self, pool, any_caller):
        pool.run(sync.random_operations, any_caller, 20261, 150, 400, env=self.grid.small_buffers)

    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    def test_ten_thousand_random_operations(self, thorough_pool, any_caller):
        thorough_pool.run(
            sync.random_operations, any_caller, 777, 10_000, 3000,
            env=self.grid.small_buffers, timeout_s=1000,
        )  # fmt: skip
