"""An error names all lost ranks; ranks that are lost for the same reason have one sentence."""

import time

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.faults.tcp.job import wait_for
from tests.grid import skip_unless_here


def two_close(comm, folder):
    comm.barrier()
    if comm.rank >= 2:
        comm.close()
        (folder / str(comm.rank)).touch()
        return
    wait_for(folder / "2", folder / "3")
    fate = "ranks 2 and 3 closed their communicators, while others waited for them"
    assert str(raises(CollectiveFailed, comm.barrier)) == f"barrier failed: {fate}"


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_of_one_fate_share_their_words(backend, tmp_path):
    values_of(forked.ranks(backend, 4, two_close, tmp_path))


class Unwritten:
    """A trace that cannot be finished, as on a full file system."""

    def finish(self):
        raise OSError("no space")


def fails_as_it_closes(comm):
    comm.barrier()
    if comm.rank == 1:
        given_back = []
        comm._give_back = lambda: given_back.append(True)
        comm._trace = Unwritten()
        raises(OSError, comm.close)
        assert given_back
        comm._trace = None
        comm.close()
        time.sleep(2)  # like a program that has caught the error and continues
    else:
        began = time.monotonic()
        assert raises(CollectiveFailed, comm.barrier).ranks == (1,)
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("backend", ["shm", "tcp:0,1", "mpi-mpich:0,1"])
def test_a_rank_that_fails_as_it_closes_has_left(backend):
    values_of(forked.ranks(skip_unless_here(backend), 2, fails_as_it_closes))
