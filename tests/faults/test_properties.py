"""Whatever the tables are, and wherever one rank begins to disagree: right, or an error on all."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cobre_comm import CollectiveFailed, CommError
from tests.conformance.bodies import gather
from tests.faults import property_bodies
from tests.grid import SMALL_STAR, timeout_of

SMALL = {**SMALL_STAR, **timeout_of(15)}
FEW, MANY = 25, 600
bounded = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    "database": None,
}


@st.composite
def tables(draw, size):
    """Counts of any size, blocks in any order with any gaps."""
    counts = [draw(st.one_of(st.just(0), st.integers(1, 20), st.integers(0, 2000)))
              for _ in range(size)]  # fmt: skip
    order = draw(st.permutations(range(size)))
    displs, end = [0] * size, 0
    for rank in order:
        end += draw(st.integers(0, 3))
        displs[rank] = end
        end += counts[rank]
    return counts, displs, end + draw(st.integers(0, 3))


def check_tables(pools, backend, caller, size, examples):
    pool = pools.get(backend, size)

    @settings(max_examples=examples, **bounded)
    @given(tables(size), st.sampled_from(["f8", "u1", "i4"]))
    def holds(layout, dtype):
        pool.run(gather.gather, caller, dtype, *layout, env=SMALL)

    holds()


@pytest.mark.parametrize("size", [2, 4])
def test_any_tables(pools, backend, caller, size):
    check_tables(pools, backend, caller, size, FEW)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_many_tables(pools, thorough_backend, caller, size):
    check_tables(pools, thorough_backend, caller, size, MANY)


def check_disagreement(pools, backend, seeds):
    for seed in seeds:
        size = random.Random(seed).choice([2, 3, 4])
        outcomes = pools.get(backend, size).run(
            property_bodies.one_goes_astray, seed, env=SMALL, fresh=True, timeout_s=30
        )
        for error, step, astray_at in outcomes:
            assert isinstance(error, CommError), f"seed {seed}: {error!r} at step {step}"
            assert step == astray_at, f"seed {seed}: error at step {step}, not {astray_at}"
            assert isinstance(error, CollectiveFailed), f"seed {seed}: {error!r}"


def test_disagreement_at_a_random_step(pools, backend):
    check_disagreement(pools, backend, range(30))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_disagreement_at_many_random_steps(pools, thorough_backend):
    check_disagreement(pools, thorough_backend, range(1000, 1600))
