"""An error names all ranks that are lost, those of one fate together."""

import time

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


class Unwritten:
    """A trace that fails at the end, as on a file system that is full."""

    def finish(self):
        raise OSError("no space")


@pytest.mark.ranks(2, backends=["shm", "tcp:0,1", "mpi-mpich:0,1"])
def test_a_rank_that_fails_as_it_closes_has_left(comm):
    comm.barrier()
    if comm.rank == 1:
        given_back = []
        comm._give_back = lambda: given_back.append(True)
        comm._trace = Unwritten()
        raises(OSError, comm.close)
        assert given_back
        comm._trace = None
        comm.close()
        time.sleep(2)  # it has caught the error
    else:
        began = time.monotonic()
        assert raises(CollectiveFailed, comm.barrier).ranks == (1,)
        assert time.monotonic() - began < 1.5
