import pytest

from tests.conformance.bodies import cast
from tests.conformance.test_allgatherv import PLAIN, PYTHON_ONLY
from tests.grid import EACH_ONCE, MANY_CHUNKS
from tests.reference import STRUCTURED


@pytest.mark.parametrize("shape", [0, 1, 12, 13, (3, 4), (), 10_000], ids=str)
def test_from_every_rank(pool, caller, shape):
    pool.run(cast.cast_from_every_rank, caller, "f8", shape)


def test_many_chunks(pool, caller):
    lengths = [159, 160, 161, 320, 3001]
    pool.run(cast.cast_lengths, caller, "f8", lengths, env=MANY_CHUNKS)


def test_structured_in_many_chunks(pool):
    pool.run(cast.cast_from_every_rank, "python", STRUCTURED, 500, env=MANY_CHUNKS)


@pytest.mark.parametrize("dtype", [*PLAIN, *PYTHON_ONLY], ids=str)
def test_dtypes_in_python(pool, dtype):
    pool.run(cast.cast_lengths, "python", dtype, [0, 1, 40, 3000])


@pytest.mark.parametrize("backend_and_size", EACH_ONCE)
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_dtypes_in_njit(pools, backend_and_size, dtype):
    pools.get(*backend_and_size).run(cast.cast_lengths, "njit", dtype, [0, 1, 300])


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_python_meets_njit(pools, backend, dtype):
    pools.get(backend, 3).run(cast.cast_lengths, "mixed", dtype, [5, 300])


def test_read_only_on_the_root(pool, caller):
    pool.run(cast.cast_read_only_on_root, caller)


def test_root_left_out(pool, caller):
    pool.run(cast.cast_default_root, caller)
