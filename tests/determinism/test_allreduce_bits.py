"""Neither chunks nor delays nor SIMD width nor backend change a bit of an allreduce."""

import itertools
import os
import random

import pytest

from cobre_comm.compile.warm import warm_up
from cobre_comm.testing import RankPool
from cobre_comm.testing.cases.mixed import bits
from tests.grid import some

LONGEST = 6000
SEEDS = range(40)
# numba compiles for this machine's own processor unless told otherwise. The first has vectors of
# 128 bits and no fused multiply-add, the last ones 256 bits with it, and 512.
PROCESSORS = ["generic", "nehalem", "haswell", "skylake-avx512"]


CALLERS_AND_SIZES = some([("njit", 3)], itertools.product(["python", "njit"], [2, 3, 4]))


def random_chunks(seed):
    """Return variables that cut payloads in another way."""
    draw = random.Random(seed)
    pages = draw.choice([1, 2, 3, 5, 16, 64])
    return {
        "COBRE_SHM_BUFFER_BYTES": str(4096 * pages),
        "COBRE_MPI_BUFFER_BYTES": str(4096 * draw.choice([1, 2, 7, 64])),
        "COBRE_TCP_EAGER_BYTES": str(draw.choice([0, 500, 4096, 1_000_000])),
    }


@pytest.mark.parametrize(("caller", "size"), CALLERS_AND_SIZES)
def test_chunks_delays_and_backends(pools, backend, caller, size):
    right = bits.digest_of(size, SEEDS, LONGEST)
    for seed in range(4):
        env = random_chunks(100 * size + seed)
        digests = pools.get(backend, size).run(bits.reduce_all, caller, SEEDS, LONGEST, env=env)
        assert set(digests) == {right}, env


@pytest.mark.slow  # `make test` has the kernels of one rank: tests/kernels/test_same_bits.py
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROCESSORS)
def test_simd_width(name):
    env = {"NUMBA_CPU_NAME": name}
    if not runs_here(name):
        pytest.skip(f"this processor cannot run code for {name}")
    warm_up(["shm"], {**os.environ, **env})
    with RankPool("shm", 3, env=env) as pool:
        digests = pool.run(bits.reduce_all, "python", SEEDS, LONGEST, timeout_s=200)
    assert set(digests) == {bits.digest_of(3, SEEDS, LONGEST)}


def runs_here(name):
    """Whether this machine has the instructions of a processor of that name."""
    needed = {"generic": [], "nehalem": ["sse4_2"], "haswell": ["avx2", "fma"]}
    needed["skylake-avx512"] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
    with open("/proc/cpuinfo") as file:  # noqa: PTH123
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return all(flag in flags for flag in needed[name])
