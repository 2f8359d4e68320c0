"""Windows of the bridge: locks that exclude, holders that end or stop, parts that do not fit."""

import contextlib
import os
import pathlib
import signal
import tempfile
import time
from unittest import mock

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.mpi4py import MPI
from cobre_comm.mpi4py.missing import NotHere
from cobre_comm.testing.cases.raised import raises
from tests.forked import on_forks
from tests.launch.command import Running, cobre, lines_of

PROGRAMS = pathlib.Path(__file__).parent / "programs"
HOLDS, COUNTS, ODD = (PROGRAMS / f"{name}.py" for name in ("holds", "counts", "odd_windows"))
ENDED = "CollectiveFailed: Win.Lock failed: rank 1 ended while it changed the part of rank 0 (1,)"
HELD = "CollectiveFailed: Win.Lock failed: rank 1 has held the lock of rank 0 for 2 s (1,)"


def test_who_ends_in_the_middle_of_a_change_is_named_and_the_lock_is_free():
    done = cobre("run", "-n", 3, "--survive", HOLDS, "dies", "LOCK_EXCLUSIVE")
    for rank in (0, 2):
        assert lines_of(done.stdout, rank)[1:] == [ENDED, ENDED], done.stderr


def test_who_ends_as_a_reader_spoils_nothing():
    done = cobre("run", "-n", 3, "--survive", HOLDS, "dies", "LOCK_SHARED")
    for rank in (0, 2):
        assert lines_of(done.stdout, rank)[1:] == ["got 0.0", "got 0.0"], done.stderr


@pytest.mark.parametrize("lock", ["LOCK_EXCLUSIVE", "LOCK_SHARED"])
@pytest.mark.parametrize("how", ["stops", "sleeps"])
def test_who_holds_a_lock_longer_than_the_timeout_is_named(how, lock):
    with Running("run", "-n", 2, "--timeout", 2, HOLDS, how, lock) as job:
        job.wait_ready(2)
        code, output, errors = job.finish()
        assert lines_of(output, 0)[1:] == [HELD, HELD], errors
        assert code == 137
        assert job.survivors() == []


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_lock_waits_for_the_one_before_it(backend):
    done = cobre("run", "-n", 3, "--backend", backend, HOLDS, "late", "LOCK_EXCLUSIVE")
    assert (done.returncode, done.stderr) == (0, "")
    for rank in (0, 2):
        assert lines_of(done.stdout, rank)[1:] == ["got 1.0", "got 1.0"]


def test_time_in_which_the_whole_job_is_suspended_is_no_wait_for_a_lock():
    with Running("run", "-n", 2, "--timeout", 5, HOLDS, "late8", "LOCK_EXCLUSIVE") as job:
        pids = [pid for known in job.wait_ready(2).values() for pid in known]
        time.sleep(1)  # rank 0 waits for the lock now
        for number, suspended_s in ((signal.SIGSTOP, 6), (signal.SIGCONT, 0)):
            for pid in pids:
                os.kill(pid, number)
            time.sleep(suspended_s)
        code, output, errors = job.finish()
    assert lines_of(output, 0)[1:] == ["got 1.0", "got 1.0"], errors
    assert code == 0


def test_changes_under_an_exclusive_lock_are_seen_whole_and_none_is_lost():
    """Ranks that write get the lock, although other ranks read all the time."""
    done = cobre("run", "-n", 4, COUNTS)
    assert (done.returncode, done.stderr) == (0, "")
    for rank in range(4):
        assert lines_of(done.stdout, rank) == ["counted 400, torn 0"]


def test_windows_refuse_what_does_not_fit_and_parts_of_other_machines():
    done = cobre("run", "-n", 2, ODD)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines_of(done.stdout, 0) == [
        "ValueError: Win: bytes 8 to 24 are not inside the part of rank 0, which has 16",
        "ValueError: Win: bytes -8 to 0 are not inside the part of rank 0, which has 16",
        *["ValueError: Win: -1 is none of the 2 ranks"] * 4,
        *["ValueError: Win: 2 is none of the 2 ranks"] * 4,
        "ValueError: Win: a size of -1 and a unit of 8 cannot be used",
        "NotHere: Win.Accumulate of mpi4py has no counterpart here: keep mpi4py for it; "
        "cobre_comm.mpi4py has what docs/howto/mpi4py-programs.md lists",
        "empty part 0",
        "after Free 5.0",
    ]
    apart = cobre("run", "-n", 2, "--backend", "tcp", ODD, COBRE_TCP_SHARE="0")
    assert "Win of mpi4py is for the ranks of one machine here" in apart.stderr
    assert apart.returncode == 1


@on_forks(2, "shm", "tcp")
def test_a_window_outlives_its_communicator(comm):
    world = MPI.Intracomm(comm).Dup()
    windows = [MPI.Win.Allocate(8, 8, comm=world) for _ in range(2)]
    of, got = world._comm, np.zeros(1)
    world.Free()
    for window in windows:
        window.Lock(comm.rank)
        window.Put(np.full(1, comm.rank + 1.0), comm.rank)
        window.Unlock(comm.rank)
        window.Fence()
        window.Get(got, 1 - comm.rank)
        assert got[0] == 2 - comm.rank
        of.barrier()
        window.Free()
    assert "closed" in str(raises(InvalidCommunicator, of.barrier))


@on_forks(2, "shm")
def test_locks_that_are_out_of_turn_change_nothing(comm):
    window = MPI.Win.Allocate(8, 8, comm=MPI.Intracomm(comm))
    wrong, got = "MPI_ERR_RMA_SYNC: this rank ", np.zeros(1)
    for rank in range(2):
        for lock in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED) if comm.rank == rank else ():
            assert f"{wrong}does not hold the lock of rank 0" in told(window.Unlock, 0)
            window.Lock(0, lock)
            for again in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED):
                assert f"{wrong}holds the lock of rank 0 already" in told(window.Lock, 0, again)
            assert window._marks.as_slice()[0] == (rank + 1) * (lock == MPI.LOCK_EXCLUSIVE)
            window.Unlock(0)
        comm.barrier()
    if comm.rank == 0:
        window.Lock(0)
    comm.barrier()
    if comm.rank == 1:  # rank 1 must remove neither the mark of rank 0 nor rank 0's lock
        told(window.Unlock, 0)
        window._timeout_s = 0.01
        assert "rank 0 has held the lock of rank 0" in str(raises(CollectiveFailed, window.Lock, 0))
    comm.barrier()
    if comm.rank == 0:
        window.Put(np.ones(1), 0)
        window.Unlock(0)
    comm.barrier()
    window.Lock(0, MPI.LOCK_SHARED)
    window.Get(got, 0)
    window.Unlock(0)
    assert got[0] == 1
    window.Free()


@on_forks(1, "shm")
def test_a_lock_that_a_signal_has_cut_short_is_taken_again(comm):
    window = MPI.Win.Allocate(8, 8, comm=MPI.Intracomm(comm))
    for again in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED):
        window.Lock(0)
        window._held.clear()
        window.Lock(0, again)
        window.Unlock(0)
        assert window._marks.as_slice()[0] == 0


def told(call, *arguments):
    return str(raises(MPI.Exception, call, *arguments))


@pytest.mark.ranks(2, backends=["shm", "tcp"])
def test_where_the_number_of_a_process_means_another_one_there_is_no_window(comm):
    """Rank 0 seems to be in another PID namespace, and to have there the pid of rank 1 here."""
    world = MPI.Intracomm(comm)
    pids = world.allgather(os.getpid())
    with contextlib.ExitStack() as stack:
        if comm.rank == 0:
            stack.enter_context(mock.patch("os.getpid", return_value=pids[1]))
        else:  # so that rank 1, too, has open descriptors with the numbers that rank 0 uses
            for _ in range(64):
                stack.enter_context(tempfile.TemporaryFile())
        error = raises(NotHere, MPI.Win.Allocate, 8, 8, None, world)
    assert "rank 1: the number of a process means another process here" in str(error)
    world.Barrier()
