"""Tests of broadcast."""

import pytest

from cobre_comm.testing.conformance.bodies import cast
from cobre_comm.testing.conformance.reference import PLAIN, PYTHON_ONLY, STRUCTURED
from cobre_comm.testing.conformance.suite import Suite, needs


class BroadcastTests(Suite):
    """The root's bytes on every rank, whoever is root."""

    @pytest.mark.parametrize("shape", [0, 1, 12, 13, (3, 4), (), 10_000], ids=str)
    def test_from_every_rank(self, pool, caller, shape):
        pool.run(cast.cast_from_every_rank, caller, "f8", shape)

    @pytest.mark.parametrize("count", [4, 12, 1000])
    def test_same_call_with_other_data(self, pool, caller, count):
        pool.run(cast.cast_again, caller, count)

    @pytest.mark.parametrize("count", [5, 1500, 9001])
    def test_odd_addresses(self, pool, caller, count):
        pool.run(cast.cast_odd_addresses, caller, count, env=self.grid.small_buffers)

    def test_twenty_mebibytes(self, typed_pool):
        typed_pool.run(cast.cast, "python", "u1", 20 * 2**20, 0)

    def test_many_chunks(self, pool, caller):
        lengths = [159, 160, 161, 320, 3001]
        pool.run(cast.cast_lengths, caller, "f8", lengths, env=self.grid.smallest_buffers)

    def test_structured_in_many_chunks(self, pool):
        pool.run(
            cast.cast_from_every_rank, "python", STRUCTURED, 500, env=self.grid.smallest_buffers
        )

    @pytest.mark.parametrize("dtype", [*PLAIN, *PYTHON_ONLY], ids=str)
    def test_dtypes_in_python(self, pool, dtype):
        pool.run(cast.cast_lengths, "python", dtype, [0, 1, 40, 3000])

    @needs("njit")
    @pytest.mark.parametrize("dtype", PLAIN, ids=str)
    def test_dtypes_in_njit(self, typed_pool, dtype):
        typed_pool.run(cast.cast_lengths, "njit", dtype, [0, 1, 300])

    @pytest.mark.parametrize("dtype", PLAIN, ids=str)
    @needs("njit")
    def test_python_meets_njit(self, pools, backend, dtype):
        pools.get(backend, 3).run(cast.cast_lengths, "mixed", dtype, [5, 300])

    def test_read_only_on_the_root(self, pool, caller):
        pool.run(cast.cast_read_only_on_root, caller)

    def test_root_left_out(self, pool, caller):
        pool.run(cast.cast_default_root, caller)
