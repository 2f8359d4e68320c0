from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cobre_comm import Communicator, ReduceOp


def share(comm: Communicator, cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cuts of all ranks, in rank order."""
    everyone = np.zeros(comm.size * cuts.size)
    comm.allgather(cuts, everyone)
    return everyone


@pytest.mark.ranks(2, 3, backends=["shm", "tcp"])
@pytest.mark.parametrize("count", [1, 1000])
def test_every_rank_has_every_cut(comm: Communicator, count: int) -> None:
    everyone = share(comm, np.full(count, comm.rank + 0.5))
    assert everyone.tolist() == [r + 0.5 for r in range(comm.size) for _ in range(count)]


@pytest.mark.ranks(3)
def test_largest(comm: Communicator, tmp_path: Path) -> None:
    (tmp_path / f"{comm.rank}").touch()  # the same folder on all ranks
    found = np.zeros(1, dtype=np.int64)
    comm.allreduce(np.array([comm.rank]), found, ReduceOp.MAX)
    assert found[0] == 2
    assert (tmp_path / f"{found[0]}").exists()
