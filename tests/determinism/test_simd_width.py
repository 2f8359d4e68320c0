"""The width of SIMD does not change a bit of an allreduce."""

import pytest
from cobre_kernels.machine.build import build
from cobre_kernels.machine.made import CHOSEN
from cobre_kernels.machine.target import levels

from cobre_comm.testing import RankPool
from cobre_comm.testing.cases.mixed import bits

LONGEST = 6000
SEEDS = range(40)


@pytest.mark.slow  # `make test` tries the kernels of one rank: tests/kernels/test_same_bits.py
@pytest.mark.timeout(600)
def test_simd_width(tmp_path):
    """Kernels agree for vectors of 128 bits (no fused multiply-add), of 256 and of 512 bits."""
    build(levels(), tmp_path)
    for name in levels():
        (tmp_path / name).mkdir()
        for file in tmp_path.glob(f"{name}.*"):
            file.rename(tmp_path / name / file.name)
        with RankPool("shm", 3, env={CHOSEN: str(tmp_path / name)}) as pool:
            digests = pool.run(bits.reduce_all, "python", SEEDS, LONGEST, timeout_s=200)
        assert set(digests) == {bits.digest_of(3, SEEDS, LONGEST)}
