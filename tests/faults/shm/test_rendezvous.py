"""The ranks of a job meet, or report why they cannot; files of other jobs are left alone."""

import errno
import fcntl
import os
import pathlib
import signal
import struct
import time
from functools import partial

import numpy as np
import pytest
from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.shm import control

from cobre_comm import CollectiveFailed, InitializationFailed, create_communicator
from cobre_comm.backends.shm import ownership, rendezvous
from cobre_comm.backends.shm.ownership import is_locked
from cobre_comm.sources import own_sources
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.waiting import wait_until
from tests.forked import on_forks

NEVER_S = 300.0  # a limit that no test waits for
PATIENCE_S = 20.0  # how long a rank waits for a peer on a busy machine
OURS = own_sources()
ranks = partial(on_forks, connect=False)


def segment():
    return pathlib.Path("/dev/shm") / os.environ["COBRE_SHM_NAME"].lstrip("/")


def own_rank():
    return int(os.environ["COBRE_SHM_RANK"])


def meet(limit_s=5.0):
    """Create a communicator; return the sum of rank + 1 over its ranks."""
    rendezvous.START_TIMEOUT_S = limit_s
    os.environ.setdefault("COBRE_SHM_TIMEOUT_SECS", str(limit_s))
    with create_communicator() as comm:
        recv = np.zeros(1)
        comm.allreduce(np.array([comm.rank + 1.0]), recv)
        comm.barrier()
        comm.create_shared_region(3).close()
    return float(recv[0])


def is_refused(*words, limit_s=5.0):
    error = raises(InitializationFailed, meet, limit_s)
    assert error.backend == "shm"
    assert all(word in str(error) for word in words), str(error)


def make_segment(*, sources=OURS.hash, size=1, length=2**16, magic=control.MAGIC):
    with segment().open("wb") as file:
        words = magic, sources, size, 4096, 2048
        file.write(struct.pack("<5q", *words) + OURS.place.replace(b"/", b"|"))
        file.truncate(length)
    segment().chmod(0o600)


@ranks(2)
def test_stale_segment_is_replaced(comm):
    """Ranks replace each kind of segment that dead jobs leave behind."""
    for kind in ("finished", "unfinished", "empty"):
        if own_rank() == 0 and kind == "empty":
            segment().touch(0o600)
        elif own_rank() == 0:
            make_segment(magic=control.UNFINISHED if kind == "unfinished" else control.MAGIC)
        else:
            time.sleep(0.1)  # rank 0 makes the stale segment meanwhile; this rank may find it
        assert meet(PATIENCE_S) == 3.0


@ranks(1)
def test_a_rank_that_is_interrupted_before_it_removes_the_name(comm, monkeypatch):
    unlink, strikes = rendezvous.segments.unlink, [KeyboardInterrupt()]

    def struck(name):
        if strikes:
            raise strikes.pop()
        unlink(name)

    monkeypatch.setattr(rendezvous.segments, "unlink", struck)
    raises(KeyboardInterrupt, meet)
    assert not segment().exists()
    assert meet() == 1.0


@ranks(1)
def test_live_segment_is_left_alone(comm):
    """Another job holds the name, and the rank 0 of that job holds the lock."""
    make_segment()
    locked, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with segment().open("r+b") as held:
            fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
            os.write(tell, b"x")
            time.sleep(PATIENCE_S)
        os._exit(0)
    try:
        os.read(locked, 1)
        is_refused("in use", "COBRE_SHM_NAME")
        assert segment().exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        segment().unlink(missing_ok=True)


@ranks(1)
def test_foreign_file_is_left_alone(comm):
    for content in (b"somebody's data, longer than a word", b"short", bytes(4096)):
        segment().write_bytes(content)
        segment().chmod(0o600)
        is_refused("not a segment of cobre_comm", "COBRE_SHM_NAME")
        assert segment().read_bytes() == content
        segment().unlink()


@ranks(1)
def test_segment_open_to_others(comm):
    make_segment()
    segment().chmod(0o666)
    is_refused("open to others", "666")
    segment().unlink()


@ranks(2)
@pytest.mark.parametrize(
    ("header", "mode", "words"),
    [
        (
            {"sources": OURS.hash + 1}, 0o600,
            ("rank 0 runs the cobre_comm of |", "rank 1 runs the cobre_comm of /", "one version"),
        ),
        pytest.param(
            {"magic": 12345}, 0o600, ("not a segment of cobre_comm",), marks=pytest.mark.slow
        ),
        pytest.param(
            {"size": 5}, 0o600, ("5 ranks", "2", "COBRE_SHM_SIZE"), marks=pytest.mark.slow
        ),
        pytest.param({}, 0o644, ("open to others", "644"), marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_follower_refuses_the_segment(comm, tmp_path, header, mode, words):
    """Process 0 holds a segment with a wrong header, as rank 0 would, until rank 1 has tried it."""
    ready, tried = tmp_path / "ready", tmp_path / "tried"
    if own_rank() == 1:
        wait_until(ready.exists)
        try:
            is_refused(*words)
        finally:
            tried.touch()
        return
    header = {"size": 2, **header}
    make_segment(length=control.buffers_offset(header["size"]) + 2**16, **header)
    segment().chmod(mode)
    with segment().open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
        ready.touch()
        wait_until(tried.exists)
    segment().unlink(missing_ok=True)


@pytest.mark.slow
@ranks(3)
def test_duplicate_rank(comm):
    """Processes 1 and 2 both believe that they are rank 1; no process is rank 2."""
    process = own_rank()
    os.environ["COBRE_SHM_RANK"] = str(min(process, 1))
    if process == 2:
        time.sleep(0.7)
        is_refused("rank 1", "already attached", "COBRE_SHM_RANK", limit_s=9.0)
    else:  # rank 0 gives up first, as in the tests below
        is_refused("2" if process == 0 else "rank 0", limit_s=9.0 if process else 3.0)


def one_rank_is_missing(absent, limit_s, words):
    """Rank 0 has to give up first: it would report a follower that gives up earlier as ended."""
    if own_rank() != absent:
        is_refused(*words[own_rank()], limit_s=limit_s * (1 + 3 * own_rank()))


@pytest.mark.slow
@ranks(3)
def test_missing_follower(comm):
    one_rank_is_missing(2, 1.5, [("2", "did not attach"), ("rank 0",)])


@ranks(2)
def test_missing_leader(comm):
    one_rank_is_missing(0, 0.2, [(), ("does not exist", "rank 0")])


def dies_when_attached(victim, witness, absent, *words):
    """The victim is killed when it and the witness have attached; a third rank never arrives."""
    if own_rank() == absent:
        return

    def die(config, segment, *rest):
        while not is_locked(segment.fd, witness):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    if own_rank() == victim:
        rendezvous._await_followers = rendezvous._await_ready = die
    is_refused(*words, limit_s=NEVER_S)


@ranks(4, killed=1)
def test_follower_dies_while_another_waits(comm):
    dies_when_attached(1, 2, 3, *(("rank 1", "ended") if own_rank() == 0 else ("rank 0",)))


@ranks(3, killed=1)
def test_leader_dies_while_a_follower_waits(comm):
    dies_when_attached(0, 1, 2, "rank 0", "ended")
    # Rank 0 removes the name only when all ranks have attached, so the name is left here. A later
    # job would replace this segment.
    if own_rank() == 1:
        segment().unlink()


@ranks(2)
def test_segment_is_private_reserved_and_nameless_once_started(comm, monkeypatch):
    seen, original = [], rendezvous._await_followers

    def look(config, made):
        original(config, made)
        seen.append(segment().stat())

    monkeypatch.setattr(rendezvous, "_await_followers", look)
    os.umask(0)
    assert meet() == 3.0
    assert len(seen) == (own_rank() == 0)
    for status in seen:
        assert (status.st_mode & 0o777, status.st_uid) == (0o600, os.geteuid())
        assert status.st_blocks * 512 >= status.st_size > 0
    assert not segment().exists()


@ranks(2)
def test_a_rank_that_cannot_take_its_pages_is_missing(comm, monkeypatch):
    """The rank says why it ends; without a launcher, the other rank waits until its limit."""

    def refuse(fd, start, count):
        raise OSError(errno.ENOSPC, "No space left on device")

    if own_rank() == 1:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
        is_refused("No space left on device in shared memory")
    else:
        is_refused("rank 1 of 2 did not attach", limit_s=1.0)


@on_forks(3, killed=1)
def test_leader_dies_while_it_splits(comm):
    """Rank 0 ends before it has made the segment of the new communicator."""
    if comm.rank == 0:
        comm._agree_on(SPLIT, 0)
        os.kill(os.getpid(), signal.SIGKILL)
    assert raises(CollectiveFailed, comm.split_local).ranks == (0,)


@ranks(2)
def test_two_ranks_0_find_the_same_stale_segment(comm, tmp_path):
    """The second rank 0 must not make a segment that the first rank 0 then removes as stale."""
    judged, tried, process = tmp_path / "judged", tmp_path / "tried", own_rank()
    os.environ["COBRE_SHM_RANK"] = "0"
    if process == 1:
        wait_until(judged.exists)
        try:
            is_refused("in use", limit_s=1.0)
        finally:
            tried.touch()
        return
    make_segment()
    look = ownership._is_ours

    def look_and_wait(fd):
        judged.touch()
        wait_until(tried.exists)
        return look(fd)

    ownership._is_ours = look_and_wait
    is_refused("1", "did not attach", limit_s=1.0)


@ranks(1)
def test_regions_leave_names_of_other_jobs_alone(comm):
    """Regions and communicators of this job leave alone what other jobs have named."""
    others = [segment().with_name(f"{segment().name}.{number}") for number in range(3)]
    for path in others:
        path.write_bytes(b"another job")
    with create_communicator() as made:
        made.create_shared_region(3).close()
        made.split_local().close()
    for path in others:
        assert path.read_bytes() == b"another job"
        path.unlink()
