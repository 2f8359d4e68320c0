"""Ranks of a tcp job that never come, cannot be reached, or leave before the job has begun."""

import errno
import os
import socket
import struct
import time

import pytest

from cobre_comm.backends.tcp.rendezvous import connector, messages
from cobre_comm.errors import InitializationFailed
from cobre_comm.testing import leftovers, run_ranks_outcomes
from tests.faults.tcp import bodies
from tests.faults.tcp.job import LOOPBACK, SHORT_MS, attach, check
from tests.grid import slow, values

SHORT_S = SHORT_MS / 1000
ENDED = "ended before all ranks had attached"


def test_missing_worker_is_named(new_job):
    job = new_job(4, connect_timeout_ms=SHORT_MS).start(0, 2)
    results = job.wait()
    check(results[0], "ranks 1, 3 of 4 did not attach", LOOPBACK, str(job.port),
          "COBRE_TCP_CONNECT_TIMEOUT_MS", "COBRE_TCP_PORT")  # fmt: skip
    check(results[2], f"rank 0 {ENDED}", "1, 3")
    assert results[0].ranks == ()
    assert results[2].ranks == (0,)
    assert job.took_s[0] >= SHORT_S


def test_early_worker_waits_until_rank_0_gives_up(new_job, monkeypatch):
    """The worker's limit begins anew when it attaches; rank 0 knows the missing ranks."""
    monkeypatch.setattr(connector, "LONGEST_PAUSE_S", 0.05)
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(1)
    time.sleep(SHORT_S / 2)
    results = job.start(0).wait()
    check(results[0], "ranks 2 of 3")
    check(results[1], "ranks 2 of 3")


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
    """It ends while ranks are missing, or while all of them open their links."""
    job = new_job(3 if linking else 4).start(0, 1)
    assert worker_attached.wait(20.0)
    with attach(job, 2) as client:
        if linking:
            tag, _ = client.frame()
            assert tag == 0x0D
    results = job.wait()
    for rank in (0, 1):
        check(results[rank], f"rank 2 {ENDED}")


def test_rank_that_ended_between_two_messages_is_named():
    """A link that its peer has reset no longer knows where the peer was."""
    with socket.create_server((LOOPBACK, 0)) as server:
        peer = socket.create_connection(server.getsockname())
        with server.accept()[0] as link:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            with pytest.raises(InitializationFailed, match=f"rank 2 {ENDED}"):
                messages.peer_of(link, 2)


@pytest.mark.parametrize("victim", [0, slow(1), slow(2)])
def test_rank_is_killed_after_it_attached(victim, tmp_path):
    outcomes = run_ranks_outcomes("tcp", 4, bodies.is_killed, victim, str(tmp_path), connect=False)
    for outcome in outcomes[:3]:  # the last one was late and found no rank 0
        if outcome.rank == victim:
            assert outcome.exit_code == -9
        else:
            check(outcome.value, f"rank {victim} {ENDED}")


def test_worker_that_cannot_be_reached_is_named(new_job, free_port):
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(0, 2)
    with attach(job, 1, port=free_port):
        results = job.wait()
    check(results[2], "rank 2 could not connect to rank 1", LOOPBACK, str(free_port), "attempts",
          "firewall")  # fmt: skip
    check(results[0], "rank 2 could not connect to rank 1")
    assert results[2].ranks == ()


def test_worker_that_no_peer_reaches_says_so(new_job):
    job = new_job(3, connect_timeout_ms=2 * SHORT_MS).start(0, 1)
    with attach(job, 2):
        results = job.wait()
    check(results[1], "rank 1 was not reached by ranks 2", "firewall")


def test_time_in_which_a_rank_is_stopped_does_not_count(tmp_path):
    limit = {"COBRE_TCP_CONNECT_TIMEOUT_MS": "2000"}
    assert values("tcp", 2, bodies.suspended, str(tmp_path), env=limit) == ["met", "met"]


@pytest.mark.parametrize("victim", [0, 1])
def test_ctrl_c(victim, tmp_path):
    """It ends the wait for a missing rank, long before the limit, and leaves no descriptor."""
    limit = {"COBRE_TCP_CONNECT_TIMEOUT_MS": "50000"}
    found = values("tcp", 2, bodies.interrupted, victim, str(tmp_path), env=limit)
    waited_s, left = found[victim]
    assert waited_s < 10.0
    assert left == 0
    check(found[1 - victim], f"rank {victim} {ENDED}")


@pytest.mark.parametrize(
    ("moment", "how", "victim"),
    [
        ("confirmed", "killed", 1),
        ("attach_group", "interrupted", 0),
        pytest.param("_share", "late", 0, marks=pytest.mark.slow),
        pytest.param("attach_group", "killed", 2, marks=pytest.mark.slow),
        pytest.param("_share", "killed", 0, marks=pytest.mark.slow),
        pytest.param("_share", "interrupted", 1, marks=pytest.mark.slow),
        pytest.param("attach_group", "late", 1, marks=pytest.mark.slow),
    ],
)
def test_rank_is_struck_while_ranks_find_their_nodes(moment, how, victim):
    """The others raise an error that names it, and nothing stays open or in shared memory."""
    limit = {"COBRE_TCP_CONNECT_TIMEOUT_MS": "1000" if how == "late" else "20000"}
    outcomes = run_ranks_outcomes(
        "tcp", 3, bodies.struck_while_sharing, victim, moment, how, env=limit, connect=False
    )
    for outcome in outcomes:
        if outcome.rank != victim:
            text, left = outcome.value
            named = f"rank {victim}" if victim == 0 or how != "late" else f"ranks {victim} of 3"
            assert named in text, text
            assert ("CONNECT_TIMEOUT" if how == "late" else ENDED) in text, text
            assert left <= 0
    assert not leftovers()


@pytest.mark.parametrize("share", [slow("0"), "1"])
def test_ranks_without_dev_shm_are_nodes_of_their_own(share):
    env = {"COBRE_TCP_SHARE": share}
    assert values("tcp", 3, bodies.without_shared_memory, "missing", env=env) == [3, 3, 3]


def test_ranks_with_a_full_dev_shm_are_told_how_to_do_without():
    for text in values("tcp", 2, bodies.without_shared_memory, "full"):
        assert "cannot share memory" in text
        assert "COBRE_TCP_SHARE=0" in text
