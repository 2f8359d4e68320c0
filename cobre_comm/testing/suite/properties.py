"""Whatever is drawn, and wherever one rank begins to disagree: right, or an error on all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.faults.disagreement import one_goes_astray
from cobre_comm.testing.suite import strategies as draws
from cobre_comm.testing.suite.part import Part, needs

TIMEOUT_S = 15
FEW, MANY = 25, 600


class PropertyTests(Part):
    """Tables, dtypes, shapes and sequences drawn by hypothesis."""

    @pytest.mark.parametrize("size", [2, 4])
    def test_any_tables(self, pools, backend, caller, size):
        self._check_tables(pools.get(backend, size), caller, FEW)

    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    @pytest.mark.parametrize("size", [2, 3, 7])
    def test_many_tables(self, pools, thorough_backend, caller, size):
        self._check_tables(pools.get(thorough_backend, size), caller, MANY)

    def test_any_reduction(self, pools, backend, caller):
        self._check_reductions(pools.get(backend, 3), caller, FEW)

    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    def test_many_reductions(self, pools, thorough_backend, caller):
        self._check_reductions(pools.get(thorough_backend, 4), caller, MANY)

    def test_any_broadcast(self, pools, backend, caller):
        self._check_broadcasts(pools.get(backend, 3), caller, FEW)

    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    def test_many_broadcasts(self, pools, thorough_backend, caller):
        self._check_broadcasts(pools.get(thorough_backend, 4), caller, MANY)

    @needs("disagreement")
    def test_disagreement_at_a_random_step(self, pools, backend):
        self._check_disagreement(pools, backend, FEW)

    @needs("disagreement")
    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    def test_disagreement_at_many_random_steps(self, pools, thorough_backend):
        self._check_disagreement(pools, thorough_backend, MANY)

    def _check_tables(self, pool, caller, examples):
        env = self.grid.environment("small", TIMEOUT_S)

        @settings(max_examples=examples, **draws.BOUNDED)
        @given(draws.tables(pool.size), draws.dtypes(caller))
        def holds(layout, dtype):
            pool.run(allgatherv.gather, caller, dtype, *layout, env=env)

        holds()

    def _check_reductions(self, pool, caller, examples):
        env = self.grid.environment("small", TIMEOUT_S)

        @settings(max_examples=examples, **draws.BOUNDED)
        @given(draws.reductions(caller), draws.shapes(caller, 1), st.integers(0, 99), st.booleans())
        def holds(dtype_and_op, shape, seed, in_place):
            pool.run(allreduce.reduce, caller, *dtype_and_op, shape, seed, in_place, env=env)

        holds()

    def _check_broadcasts(self, pool, caller, examples):
        env = self.grid.environment("small", TIMEOUT_S)
        roots = st.integers(0, pool.size - 1)

        @settings(max_examples=examples, **draws.BOUNDED)
        @given(draws.dtypes(caller), draws.shapes(caller, 0), roots)
        def holds(dtype, shape, root):
            pool.run(broadcast.cast, caller, dtype, shape, root, env=env)

        holds()

    def _check_disagreement(self, pools, backend, examples):
        env = self.grid.environment("small", TIMEOUT_S)

        @settings(max_examples=examples, **draws.BOUNDED)
        @given(draws.sequences([2, 3, 4]))
        def holds(drawn):
            size, steps, at, who, other = drawn
            outcomes = pools.get(backend, size).run(
                one_goes_astray, self.callers(), steps, at, who, other,
                env=env, fresh=True, timeout_s=30,
            )  # fmt: skip
            for error, step in outcomes:
                assert isinstance(error, CollectiveFailed), f"{error!r} at step {step}"
                assert step == at, f"error at step {step}, not {at}"
                assert size == 2 or error.ranks == (who,), f"{who} is at fault: {error}"
            assert len({error.message for error, _ in outcomes}) == 1, "all ranks say the same"

        holds()
