"""An error names all ranks that are lost, those of one fate together."""

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.raised import raises
from tests.faults.tcp.job import wait_for


@pytest.mark.ranks(4, backends=["shm", "tcp"])
def test_ranks_of_one_fate_share_their_words(comm, tmp_path):
    comm.barrier()
    if comm.rank >= 2:
        comm.close()
        (tmp_path / str(comm.rank)).touch()
        return
    wait_for(tmp_path / "2", tmp_path / "3")
    fate = "rank 2 and rank 3 closed their communicators, while others waited for them"
    assert str(raises(CollectiveFailed, comm.barrier)) == f"barrier failed: {fate}"
