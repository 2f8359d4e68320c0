"""Tests of barrier."""

import pytest

from cobre_comm.testing.conformance.bodies import sync
from cobre_comm.testing.conformance.suite import Suite


class BarrierTests(Suite):
    """Nobody returns before all have entered."""

    def test_write_before_read_after(self, pool, caller, tmp_path):
        path = tmp_path / "words"
        path.write_bytes(bytes(8 * pool.size))
        pool.run(sync.barrier_orders_writes, caller, str(path), 200)

    def test_files_before_are_there_after(self, pool, caller, tmp_path):
        pool.run(sync.barrier_orders_files, caller, str(tmp_path))

    def test_three_in_a_row(self, pool, caller):
        pool.run(sync.three_barriers, caller)

    @pytest.mark.parametrize("late", [0, -1])
    def test_late_rank_delays_all(self, pool, caller, late):
        times = pool.run(sync.late_rank_delays_all, caller, late % pool.size, 0.15)
        last_entry = max(entered for entered, _ in times)
        assert all(left >= last_entry for _, left in times)
