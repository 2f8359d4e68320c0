"""Unauthenticated connections to the port of a tcp job are dropped, and the job starts."""

import contextlib
import errno
import logging
import os
import resource
import socket
import threading
import time

import pytest

from cobre_comm import InitializationFailed, objects
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.waiting import wait_until
from tests.faults.odd import descriptors
from tests.faults.tcp.clients import Client, Visitor, handshake, wait_for_port
from tests.faults.tcp.job import (
    LOOPBACK,
    TOKEN,
    check,
    check_job,
    meet_others,
    own_address,
    own_rank,
    wait_for,
)
from tests.forked import on_forks
from tests.grid import values

LIMIT_S = 20.0


def limit_descriptors(more):
    limit = len(descriptors()) + more
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def few_descriptors(comm, go):
    """Rank 0 may open only a hundred more files, and the last rank is late; return the log."""
    lines, log = [], logging.Handler()
    log.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("cobre_comm").addHandler(log)
    if own_rank() == 0:
        limit_descriptors(100)
    if own_rank() == 2:
        wait_for(go)
    meet_others()
    return lines


def test_crowd_when_descriptors_are_few(tmp_path, free_port):
    port, go = free_port, tmp_path / "go"

    def crowd(held):
        wait_for_port(port)
        for _ in range(300):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection((LOOPBACK, port), 1.0))
        go.touch()

    held = []
    thread = threading.Thread(target=crowd, args=(held,))
    thread.start()
    try:
        env = {"COBRE_TCP_PORT": str(port)}
        logged = values("tcp", 3, few_descriptors, go, env=env)
    finally:
        thread.join()
        for sock in held:
            sock.close()
    assert any("was evicted" in line for line in logged[0])
    assert len(held) > 250


def test_no_descriptor_left(new_job, caplog, monkeypatch):
    # A rank checks its own limit beforehand, but the system has a limit for all processes, too.
    failures = [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED] * 3

    class Listener(socket.socket):
        def accept(self):
            if failures:
                raise OSError(failures.pop(), "no luck")
            return super().accept()

    listener = Listener()
    listener.bind((LOOPBACK, 0))
    job = new_job(2, port=listener.getsockname()[1])
    check_job(job.start(0, listener=listener).start(1))
    assert not failures
    assert caplog.text.count("cannot accept") == 1


@on_forks(2, "tcp", env={"COBRE_TCP_TOKEN": ""})
def test_no_objects_from_ranks_without_a_secret(comm):
    """Objects are refused before anything is sent, so the ranks of this test need not meet."""
    for call in (objects.broadcast, objects.gather, objects.allgather):
        assert "set COBRE_TCP_TOKEN" in str(raises(PermissionError, call, comm, {}))
    comm.barrier()


@pytest.mark.ranks(1, backends=["tcp"], connect=False, env={"COBRE_TCP_SIZE": "40"})
def test_too_few_descriptors(comm):
    limit_descriptors(50)
    check(raises(InitializationFailed, meet_others), "open files", "ulimit")


def garbage(client, over):
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + os.urandom(2000))
    client.closed()


def port_scan(client, over):
    over.wait(0.01)


def half_open(client, over):
    over.wait(10.0)


def one_byte_at_a_time(client, over):
    for byte in handshake(client.challenge(), TOKEN.encode(), rank=2, size=3):
        client.send(bytes([byte]))
        if over.wait(0.5):
            return


def replay(client, over):
    """Send the answer that a true worker gave to another challenge."""
    old = handshake(bytes(43), TOKEN.encode(), rank=2, size=3)
    client.challenge()
    client.send(old)
    client.closed()


@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (garbage, "not a handshake"),
        (port_scan, "left before the handshake was complete"),
        (half_open, ""),
        (one_byte_at_a_time, ""),
        (replay, "could not prove"),
    ],
)
def test_visitors_are_dropped_and_the_job_starts(new_job, caplog, behave, words):
    caplog.set_level(logging.WARNING, logger="cobre_comm")
    job = new_job(3).start(0, 1)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            visitor = stack.enter_context(Visitor(job.port, behave))
            assert visitor.visited.wait(LIMIT_S)
        wait_until(lambda: words in caplog.text)
        check_job(job.start(2))  # while visitors are there, some of which send nothing
    lines = [line for line in caplog.text.splitlines() if "dropped a connection" in line]
    assert len(lines) == len(set(lines)) <= 3
    assert words in caplog.text


def test_silent_and_slow_clients_are_dropped_in_time(new_job, caplog, monkeypatch):
    monkeypatch.setattr("cobre_comm.backends.tcp.rendezvous.acceptor.HANDSHAKE_S", 0.3)
    job = new_job(2, connect_timeout_ms=60_000).start(0)
    began = time.monotonic()
    with Client(job.port) as silent, Client(job.port) as slow:
        slow.challenge()
        with contextlib.suppress(OSError):  # on a busy machine the second byte may be too late
            for byte in b"\0\0\0":
                slow.send(bytes([byte]))
                time.sleep(0.05)
        silent.challenge()
        silent.closed()
        slow.closed()
    assert time.monotonic() - began > 0.2
    check_job(job.start(1))
    assert caplog.text.count("did not complete the handshake within 0.3 s") == 1


def test_the_oldest_of_the_crowd_gives_way(new_job, monkeypatch):
    monkeypatch.setattr("cobre_comm.backends.tcp.rendezvous.acceptor.MOST_UNAUTHENTICATED", 8)
    job = new_job(2, bind_addr="0.0.0.0").start(0)
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(Client(job.port, own_address()))
        alone.challenge()
        crowd = [stack.enter_context(Client(job.port)) for _ in range(30)]
        for client in crowd:
            with contextlib.suppress(EOFError):
                client.challenge()
        crowd[0].closed()
        crowd[10].closed()
        alone.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):  # rank 0 has not closed this connection
            alone.closed()
        check_job(job.start(1))
