from pathlib import Path

import numpy as np
import pytest

from cobre_comm import Communicator
from cobre_comm.testing import rank_raises


def total_inflow(comm: Communicator, path: Path) -> float:
    total = np.zeros(1)
    comm.allreduce(np.loadtxt(path, ndmin=1), total)
    return float(total[0])


@pytest.mark.ranks(3, backends=["shm", "tcp"], timeout=20)
def test_a_missing_file_ends_all(comm: Communicator, tmp_path: Path) -> None:
    path = tmp_path / f"inflow-{comm.rank}.txt"
    if comm.rank != 1:
        path.write_text("3.5")
    with rank_raises(comm, 1, FileNotFoundError, match=r"inflow-1\.txt") as caught:
        total_inflow(comm, path)
    assert comm.rank == 1 or "rank 1" in str(caught.value)
