import pytest

from tests.conformance.bodies import gather
from tests.grid import EACH_ONCE, MANY_CHUNKS
from tests.reference import COMPLEX, FLOATS, INTEGERS, STRUCTURED

PLAIN = [*INTEGERS, *FLOATS, *COMPLEX, "?", STRUCTURED, "M8[D]", "m8[ns]", "S5", "U3"]
PYTHON_ONLY = ["f2", "g", "G", ">f8", ">i2", "V7"]  # numba has none of them on a CPU


@pytest.mark.parametrize("name", list(gather.layouts(3)))
def test_layouts(pool, caller, name):
    pool.run(gather.gather_layout, caller, name)


def test_many_chunks(pool, caller):
    pool.run(gather.gather_equal, caller, "f8", 2000, env=MANY_CHUNKS)


def test_some_ranks_send_many_chunks_and_others_few(pool, caller):
    counts = [(0, 5000, 3, 171, 170, 1)[r % 6] for r in range(pool.size)]
    displs = [sum(counts[:r]) for r in range(pool.size)]
    pool.run(gather.gather, caller, "f8", counts, displs, sum(counts), env=MANY_CHUNKS)


def test_every_layout_in_many_chunks_of_large_elements(pool):
    pool.run(gather.gather_every_layout, "python", STRUCTURED, env=MANY_CHUNKS)


def test_element_larger_than_a_chunk(pool):
    pool.run(gather.gather_layout, "python", "uneven", "V5000", env=MANY_CHUNKS)


@pytest.mark.parametrize("count", [11, 12, 13, 170, 171, 341])
def test_edges_of_inline_and_chunk(pool, caller, count):
    pool.run(gather.gather_equal, caller, "f8", count, env=MANY_CHUNKS)


def test_hundred_thousand_each(pool, caller):
    pool.run(gather.gather_equal, caller, "f8", 100_000)


@pytest.mark.parametrize("dtype", [*PLAIN, *PYTHON_ONLY], ids=str)
def test_dtypes_in_python(pool, dtype):
    pool.run(gather.gather_every_layout, "python", dtype)


@pytest.mark.parametrize("backend_and_size", EACH_ONCE)
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_dtypes_in_njit(pools, backend_and_size, dtype):
    pools.get(*backend_and_size).run(gather.gather_layout, "njit", "uneven", dtype)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_python_meets_njit(pools, backend, dtype):
    pools.get(backend, 3).run(gather.gather_layout, "mixed", "uneven", dtype)


@pytest.mark.parametrize("count", [0, 1, 50, 5000])
def test_own_block_in_place(pool, caller, count):
    pool.run(gather.gather_in_place, caller, count, env=MANY_CHUNKS)


@pytest.mark.parametrize("tables", ["list", "tuple", "int64", "int32", "uint64", "strided"])
def test_tables_in_python(pool, tables):
    pool.run(gather.gather_layout, "python", "gaps", "f8", tables)


@pytest.mark.parametrize("backend_and_size", EACH_ONCE)
@pytest.mark.parametrize("tables", ["tuple", "int64", "int32", "uint64", "strided", "typed list"])
def test_tables_in_njit(pools, backend_and_size, tables):
    pools.get(*backend_and_size).run(gather.gather_layout, "njit", "gaps", "f8", tables)


def test_two_and_no_dimensions(pool, caller):
    pool.run(gather.gather_shapes, caller)


def test_send_may_be_read_only(pool, caller):
    pool.run(gather.gather_read_only_send, caller)
