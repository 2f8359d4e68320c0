"""Ranks of a tcp job that never arrive, cannot be reached, or leave before the job has begun."""

import contextlib
import errno
import gc
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from cobre_kernels.tcp import tags

from cobre_comm import InitializationFailed, TcpBackend
from cobre_comm.backends.nodes import sharing
from cobre_comm.backends.shm import segment
from cobre_comm.backends.tcp import meet
from cobre_comm.backends.tcp.rendezvous import connector, messages
from cobre_comm.config import TcpConfig
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.waiting import await_all
from tests.faults.odd import descriptors, limited
from tests.faults.tcp.job import (
    LOOPBACK,
    SHORT_MS,
    ask_for_peers,
    attach,
    check,
    meet_others,
    once_attached,
    own_rank,
    wait_for,
)
from tests.forked import on_forks
from tests.grid import slow

SHORT_S = SHORT_MS / 1000
LATE_S = 4.0
ENDED = "ended before all ranks had attached"


def test_missing_worker_is_named(new_job):
    job = new_job(4, connect_timeout_ms=SHORT_MS).start(0, 2)
    results = job.wait()
    check(results[0], "ranks 1 and 3 of 4 did not attach", LOOPBACK, str(job.port),
          "COBRE_TCP_CONNECT_TIMEOUT_MS", "COBRE_TCP_PORT")  # fmt: skip
    check(results[2], f"rank 0 {ENDED}", "1 and 3")
    assert results[0].ranks == ()
    assert results[2].ranks == (0,)
    assert job.took_s[0] >= SHORT_S


def test_early_worker_waits_until_rank_0_gives_up(new_job, monkeypatch):
    """A worker's limit begins again when it attaches, so rank 0 is the first to give up."""
    monkeypatch.setattr(connector, "LONGEST_PAUSE_S", 0.05)
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(1)
    time.sleep(SHORT_S / 2)
    results = job.start(0).wait()
    check(results[0], "rank 2 of 3")
    check(results[1], "rank 2 of 3")


def test_missing_rank_0(new_job):
    job = new_job(2, connect_timeout_ms=SHORT_MS, coordinator="localhost").start(1)
    check(job.wait()[1], "localhost", str(job.port), "attempts", os.strerror(errno.ECONNREFUSED),
          "127.0.0.1", "COBRE_TCP_COORDINATOR", "COBRE_TCP_PORT")  # fmt: skip
    assert job.took_s[1] >= SHORT_S


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70])
def test_name_that_does_not_resolve(new_job, host):
    job = new_job(2, connect_timeout_ms=SHORT_MS, coordinator=host).start(1)
    check(job.wait()[1], host, "its name", "COBRE_TCP_COORDINATOR")


def test_port_in_use(new_job):
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        check(new_job(2, port=port).start(0).wait()[0], LOOPBACK, str(port), "COBRE_TCP_PORT")


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid"])
def test_address_of_another_machine(new_job, host):
    check(new_job(2, bind_addr=host).start(0).wait()[0], host, "COBRE_TCP_BIND_ADDR")


def test_another_program_listens_at_the_port(new_job):
    with socket.create_server((LOOPBACK, 0)) as other:
        job = new_job(2, port=other.getsockname()[1], connect_timeout_ms=SHORT_MS).start(1)
        peer, _ = other.accept()
        with peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            check(job.wait()[1], "is not a rank of cobre_comm", str(job.port))


@pytest.mark.parametrize("linking", [False, True])
def test_worker_ends_before_the_job_has_begun(new_job, worker_attached, linking):
    """One worker ends while another is missing, or while all ranks open their links."""
    job = new_job(3 if linking else 4).start(0, 1)
    assert worker_attached.wait(20.0)
    with attach(job, 2) as client:
        if linking:
            assert ask_for_peers(client) == tags.PEERS
    results = job.wait()
    for rank in (0, 1):
        check(results[rank], f"rank 2 {ENDED}")


def test_rank_that_ended_between_two_messages_is_named():
    """After a reset, a socket has lost the address of its peer."""
    with socket.create_server((LOOPBACK, 0)) as server:
        peer = socket.create_connection(server.getsockname())
        with server.accept()[0] as link:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            with pytest.raises(InitializationFailed, match=f"rank 2 {ENDED}"):
                messages.peer_of(link, 2)


@on_forks(4, "tcp", connect=False, killed=1)
@pytest.mark.parametrize("victim", [0, slow(1), slow(2)])
def test_rank_is_killed_after_it_attached(comm, victim, tmp_path):
    """A rank is killed when all ranks but the last have attached; the last rank is late."""
    rank, dying = own_rank(), tmp_path / "dying"

    def die():
        wait_for(tmp_path / "1", tmp_path / "2")
        dying.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def attached():
        (tmp_path / str(rank)).touch()
        if rank == victim:
            die()

    once_attached(attached)
    if victim == rank == 0:
        threading.Thread(target=die).start()
    if rank == 3:
        wait_for(dying)
        os.environ["COBRE_TCP_CONNECT_TIMEOUT_MS"] = "300"
    error = raises(InitializationFailed, meet_others)
    if rank != 3:
        check(error, f"rank {victim} {ENDED}")


def test_worker_that_cannot_be_reached_is_named(new_job, free_port):
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(0, 2)
    with attach(job, 1, port=free_port) as client:
        assert ask_for_peers(client) == tags.PEERS
        results = job.wait()
    check(results[2], "rank 2 could not connect to rank 1", LOOPBACK, str(free_port), "attempts",
          "firewall")  # fmt: skip
    check(results[0], "rank 2 could not connect to rank 1")
    assert results[2].ranks == ()


def test_worker_that_no_peer_reaches_says_so(new_job):
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(0, 1)
    with attach(job, 2) as client:
        assert ask_for_peers(client) == tags.PEERS
        results = job.wait()
    check(results[1], "rank 1 was not reached by rank 2", "firewall")


def within(milliseconds, **more):
    return {"COBRE_TCP_CONNECT_TIMEOUT_MS": str(milliseconds), **more}


@on_forks(2, "tcp", connect=False, env=within(2000))
def test_time_in_which_a_rank_is_stopped_does_not_count(comm, tmp_path):
    """Rank 1 is stopped for longer than its limit while it tries to connect to rank 0."""
    resumed, pid = tmp_path / "resumed", os.getpid()
    await_all(tmp_path, own_rank(), 2)
    if own_rank() == 0:
        wait_for(resumed)
        meet_others()
        return
    command = f"sleep 0.3; kill -STOP {pid}; sleep 2.5; kill -CONT {pid}; touch {resumed}"
    with subprocess.Popen(["sh", "-c", command]):
        meet_others()


@on_forks(2, "tcp", connect=False, env=within(50000, COBRE_TCP_SIZE="3"))
@pytest.mark.parametrize("victim", [0, 1])
def test_ctrl_c(comm, victim, tmp_path):
    """Ctrl-C ends the wait for a missing rank before its limit, and leaves no descriptor open."""
    attached, sent_at, before = tmp_path / "attached", [], len(descriptors())

    def interrupt():
        wait_for(attached)
        sent_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    once_attached(attached.touch)
    if own_rank() != victim:
        check(raises(InitializationFailed, meet_others), f"rank {victim} {ENDED}")
        return
    thread = threading.Thread(target=interrupt)
    thread.start()
    raises(KeyboardInterrupt, meet_others)
    assert time.monotonic() - sent_at[0] < 10.0
    thread.join()
    assert len(descriptors()) == before


def struck_while_they_find_their_nodes(folder, moment, how, victim):
    """One rank is struck; the others raise an error that names it, and close all descriptors."""
    owner = sharing if moment == "confirmed" else meet
    genuine, before = getattr(owner, moment), len(descriptors())

    def strike(*arguments):
        found = genuine(*arguments) if moment == "as_one_node" else None
        if how == "late":
            time.sleep(LATE_S)
        else:
            os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGINT)
        return found or genuine(*arguments)

    os.environ |= within(1000 if how == "late" else 20000)
    await_all(folder, own_rank(), 3)
    if own_rank() == victim:
        setattr(owner, moment, strike)
        with contextlib.suppress(InitializationFailed, KeyboardInterrupt):
            TcpBackend(TcpConfig.from_env()).close()
        return
    text = str(raises(InitializationFailed, TcpBackend, TcpConfig.from_env()))
    gc.collect()
    named = f"rank {victim}" if victim == 0 or how != "late" else f"rank {victim} of 3"
    assert named in text
    assert ("CONNECT_TIMEOUT" if how == "late" else ENDED) in text
    assert len(descriptors()) <= before


@on_forks(3, "tcp", connect=False, killed=1)
@pytest.mark.parametrize(
    ("moment", "victim"),
    [
        ("confirmed", 1),
        pytest.param("attach_group", 2, marks=pytest.mark.slow),
        pytest.param("as_one_node", 0, marks=pytest.mark.slow),
    ],
)
def test_rank_is_killed_while_ranks_find_their_nodes(comm, tmp_path, moment, victim):
    struck_while_they_find_their_nodes(tmp_path, moment, "killed", victim)


@on_forks(3, "tcp", connect=False)
@pytest.mark.parametrize(
    ("moment", "how", "victim"),
    [
        ("attach_group", "interrupted", 0),
        pytest.param("as_one_node", "late", 0, marks=pytest.mark.slow),
        pytest.param("as_one_node", "interrupted", 1, marks=pytest.mark.slow),
        pytest.param("attach_group", "late", 1, marks=pytest.mark.slow),
    ],
)
def test_rank_is_struck_while_ranks_find_their_nodes(comm, tmp_path, moment, how, victim):
    struck_while_they_find_their_nodes(tmp_path, moment, how, victim)


def be_without_dev_shm():
    """Let this process have no shared memory."""

    def refuse(*_):
        raise OSError("no /dev/shm here")

    segment.SHM_FOLDER, segment.create_named = pathlib.Path("/nowhere"), refuse


@on_forks(3, "tcp", connect=False)
def test_the_limit_holds_again_once_all_ranks_have_compiled(comm, tmp_path):
    """When ranks find that they share no memory, they compile; after that, one rank is late."""
    be_without_dev_shm()
    struck_while_they_find_their_nodes(tmp_path, "name_nodes", "late", 1)


@on_forks(3, "tcp", connect=False)
@pytest.mark.parametrize("share", [slow("0"), "1"])
def test_ranks_without_dev_shm_are_nodes_of_their_own(comm, share):
    be_without_dev_shm()
    os.environ["COBRE_TCP_SHARE"] = share
    with TcpBackend(TcpConfig.from_env()) as made:
        assert made.sum(made.rank) == 3


@on_forks(2, "tcp", connect=False)
def test_ranks_with_a_full_dev_shm_are_told_how_to_do_without(comm):
    with limited(resource.RLIMIT_FSIZE, 4096):
        text = str(raises(InitializationFailed, TcpBackend, TcpConfig.from_env()))
    assert "cannot share memory" in text
    assert "COBRE_TCP_SHARE=0" in text
