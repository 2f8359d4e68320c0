"""Ranks of a tcp job that have another token, size, rank or version than the others."""

import socket
import struct

import pytest
from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.connector import Attempts
from cobre_comm.backends.tcp.rendezvous.handshake import OWN_BYTE_ORDER, AuthenticationFailed
from tests.faults.tcp.clients import MAGIC, Client, frame, handshake, refusal
from tests.faults.tcp.job import LOOPBACK, SHORT_MS, TOKEN, check, check_job


@pytest.mark.parametrize(
    ("ours", "theirs"), [(TOKEN, "another"), (TOKEN, None), (None, TOKEN), ("", TOKEN)]
)
def test_other_token(new_job, caplog, ours, theirs):
    """Rank 0 gives up and closes its port; the refused rank still says why it was refused."""
    job = new_job(3, token=ours, connect_timeout_ms=SHORT_MS).start(0, 1)
    results = job.start(2, token=theirs, connect_timeout_ms=2 * SHORT_MS).wait()
    check(results[0], "rank 2 of 3 did not attach")
    check(results[2], "COBRE_TCP_TOKEN", "attempts")
    assert TOKEN not in caplog.text
    assert "another" not in caplog.text
    assert caplog.text.count("could not prove that it knows the token") == 1
    assert "dropped" in caplog.text


@pytest.mark.parametrize("error", [ConnectionRefusedError, ConnectionResetError])
def test_a_port_that_closes_hides_no_earlier_error(error):
    attempts = Attempts(0)
    attempts.note("here", error(1, "no rank"))
    assert "no rank" in str(attempts)
    attempts.note("here", AuthenticationFailed("the token"))
    attempts.note("here", error(1, "no rank"))
    assert "here: the token" in str(attempts)
    assert "3 failed attempts" in str(attempts)


def test_other_size(new_job, caplog):
    job = new_job(3).start(0, 1)
    check(new_job(5, port=job.port).start(2).wait()[2], "5 ranks", "told 3", "COBRE_TCP_SIZE")
    check_job(job.start(2))
    assert caplog.text.count("COBRE_TCP_SIZE") == 1


def test_other_size_of_a_launcher_of_ours(new_job, monkeypatch):
    """The error names the launcher's option as the cure, and not a variable of the launcher."""
    monkeypatch.setenv("COBRE_JOB_ID", "cobre-0-1")
    job = new_job(3).start(0, 1)
    told = new_job(5, port=job.port).start(2).wait()[2]
    check(told, "5 ranks", "told 3", "check -n and --nnodes")
    assert "COBRE_TCP_SIZE" not in str(told)
    check_job(job.start(2))


def test_duplicate_rank(new_job, worker_attached):
    job = new_job(3).start(0, 1)
    assert worker_attached.wait(20.0)
    twin = new_job(3, port=job.port).start(1)
    check(twin.wait()[1], "rank 1", "already attached", "COBRE_TCP_RANK")
    check_job(job.start(2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rank": 3}, ["rank 3 of 3", "COBRE_TCP_RANK"]),
        ({"rank": 2**32 - 1}, ["rank 4294967295 of 3", "COBRE_TCP_RANK"]),
        ({"rank": 0}, ["rank 0 of 3", "COBRE_TCP_RANK"]),
        ({"size": 4}, ["4 ranks", "told 3", "COBRE_TCP_SIZE"]),
        ({"version": 77}, ["version 77", f"speaks {tags.PROTOCOL_VERSION}"]),
        (
            {"sources": 77, "place": b"another place"},
            ["rank 1 runs the cobre_comm of another place, rank 0 runs", "use one version"],
        ),
        ({"byte_order": 1 - OWN_BYTE_ORDER}, ["-endian"]),
        ({"byte_order": 9}, ["-endian"]),
        ({"rank": 2, "target": 1}, ["looks for rank 1", "found rank 0"]),
    ],
)
def test_proven_peers_that_are_wrong_are_told(new_job, caplog, changes, words):
    job = new_job(3).start(0, 1)
    with Client(job.port) as client:
        reason = refusal(client.introduce(TOKEN, **changes))
        client.closed()
    assert all(word in reason for word in words), reason
    assert reason in caplog.text
    check_job(job.start(2))


def test_other_links_need_the_secret_of_the_job(new_job):
    # Ranks learn the secret of the job only when all have attached; nobody can compute this secret
    # from the token.
    job = new_job(3).start(0, 1)
    for purpose in (1, 2, 3, 200):
        with Client(job.port) as client:
            client.send(handshake(client.challenge(), TOKEN.encode(), rank=2, purpose=purpose))
            client.closed()
    check_job(job.start(2))


def test_rank_0_of_another_version_without_a_proof(new_job):
    with socket.create_server((LOOPBACK, 0)) as other:
        job = new_job(2, port=other.getsockname()[1], connect_timeout_ms=SHORT_MS).start(1)
        peer, _ = other.accept()
        with peer:
            peer.sendall(frame(tags.CHALLENGE, struct.pack(">8sHB32s", MAGIC, 9, 1, bytes(32))))
            assert peer.recv(1000)
        other.close()
        check(job.wait()[1], "attempts")
        assert job.took_s[1] >= SHORT_MS / 1000


def test_no_token_on_a_network(new_job, caplog):
    check_job(new_job(2, token=None, bind_addr="0.0.0.0").start_all())
    assert caplog.text.count("COBRE_TCP_TOKEN") == 1
    assert "0.0.0.0 port" in caplog.text


@pytest.mark.parametrize("config", [{"token": None}, {"bind_addr": "0.0.0.0"}])
def test_no_warning_without_need(new_job, caplog, config):
    check_job(new_job(2, **config).start_all())
    assert caplog.text == ""
