"""The width of SIMD does not change a bit of an allreduce."""

import os

import pytest

from cobre_comm.compile.warm import warm_up
from cobre_comm.testing import RankPool
from cobre_comm.testing.cases.mixed import bits

LONGEST = 6000
SEEDS = range(40)
# numba compiles for this machine's own processor unless told otherwise. The first has vectors of
# 128 bits and no fused multiply-add, the last ones 256 bits with it, and 512.
PROCESSORS = ["generic", "nehalem", "haswell", "skylake-avx512"]


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
    """Whether this machine has the instructions of a kind of processor."""
    needed = {"generic": [], "nehalem": ["sse4_2"], "haswell": ["avx2", "fma"]}
    needed["skylake-avx512"] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
    with open("/proc/cpuinfo") as file:  # noqa: PTH123
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return all(flag in flags for flag in needed[name])
