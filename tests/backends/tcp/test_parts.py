"""The small parts of the tcp rendezvous: frames, addresses, links, the log, tasks."""

import contextlib
import logging
import os
import select
import socket
import struct
import subprocess

import pytest
from cobre_kernels.tcp import tags

from cobre_comm import InitializationFailed
from cobre_comm.backends.tcp import process
from cobre_comm.backends.tcp.process import IDENTITY
from cobre_comm.backends.tcp.rendezvous import addresses, messages, sockets
from cobre_comm.backends.tcp.rendezvous.acceptor import MOST_LINES, DropLog
from cobre_comm.backends.tcp.rendezvous.event_loop import TaskLoop, receive, send
from cobre_comm.backends.tcp.rendezvous.messages import (
    lost,
    pack_checked,
    receive_frame,
    send_refused,
)
from cobre_comm.system import open_files
from cobre_comm.system.running_time import running_s
from tests.backends.tcp.peer_task import PATIENCE_S, PeerTask

FOUR = messages.Expected(tags.PEERS, 4, 4)


def test_expected_frame():
    with PeerTask(lambda sock, until: receive_frame(sock, 3, FOUR)) as peer:
        peer.send(pack_checked(tags.PEERS, b"data"))
        assert peer.result() == b"data"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pack_checked(tags.REFUSED, b"rank 1 ended before all ranks had attached"), "rank 1 ended"),
        (
            pack_checked(tags.REFUSED, b"no luck"),
            "rank 3 ended before all ranks had attached: no luck",
        ),
        (pack_checked(tags.REFUSED, bytes(2000)), "frame 0xc of 2000 bytes out of turn"),
        (pack_checked(tags.PEERS, b"12345"), "frame 0xd of 5 bytes out of turn"),
        (struct.pack(">IB", 0, tags.PEERS), "out of turn"),
        (b"", "rank 3 ended before all ranks had attached"),
    ],
)
def test_unexpected_frame(data, words):
    with PeerTask(lambda sock, until: receive_frame(sock, 3, FOUR)) as peer:
        peer.send(data)
        if not data:
            peer.sock.shutdown(socket.SHUT_WR)
        error = peer.result()
        assert isinstance(error, InitializationFailed)
        assert words in str(error)


@pytest.mark.parametrize("tag", [tags.PEERS, tags.REFUSED])
def test_a_frame_with_one_flipped_bit_is_refused(tag):
    whole = pack_checked(tag, b"data")
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with PeerTask(lambda sock, until: receive_frame(sock, 3, FOUR), first=changed) as peer:
            peer.sock.shutdown(socket.SHUT_WR)
            assert isinstance(peer.result(), InitializationFailed), bit


def test_reason_is_cut_to_what_will_be_read():
    one, other = socket.socketpair()
    with one, other:
        send_refused(one, lost(1, "because " * 1000))
        assert other.recv(5) == struct.pack(">IB", 1005, tags.REFUSED)


def test_peers_come_out_as_they_went_in():
    listeners = [
        (addresses.address_of(("10.1.2.3", 0)), 1000),
        (addresses.address_of(("2001:db8::7", 0, 0, 0)), 2000),
        (addresses.address_of(("fe80::5%2", 0, 0, 2)), 3000),
        (None, 4000),
    ]
    packed = messages.pack_peers(25_000, listeners)
    assert len(packed) == 5 + messages.peers(4).most + 4
    limit_ms, found = messages.unpack_peers(packed[5:-4], ("fe80::9%7", 29500, 0, 7))
    assert limit_ms == 25_000
    assert [endpoint.sockaddr for endpoint in found] == [
        ("10.1.2.3", 1000),
        ("2001:db8::7", 2000, 0, 0),
        ("fe80::5", 3000, 0, 7),
        ("fe80::9%7", 4000, 0, 7),
    ]
    assert found[0].family == socket.AF_INET
    _, found = messages.unpack_peers(packed[5:-4], ("10.9.9.9", 29500))
    assert found[3] == (socket.AF_INET, ("10.9.9.9", 4000))


def test_a_job_comes_out_as_it_went_in():
    job = messages.JobMessage(2**31, 3, bytes(range(16)))
    assert messages.unpack_job(job.pack()[5:-4]) == job


def test_ipv4_in_disguise():
    assert addresses.address_of(("::ffff:127.0.0.1", 1, 0, 0)).is_loopback
    assert addresses.address_of(("::ffff:10.0.0.1", 1, 0, 0)).version == 4


# Unauthenticated connections: what they can do to the log and to the process.


def test_log_is_bounded(caplog):
    log = DropLog(0)
    for number in range(5000):
        log.note(f"10.0.0.{number % 250}", f"did something {number % 3}")
    log.close()
    assert len(caplog.records) == MOST_LINES + 1
    assert "5000 connections" in caplog.text


def test_each_trouble_is_logged_once(caplog):
    caplog.set_level(logging.WARNING, logger="cobre_comm")
    log = DropLog(3)
    log.note("10.0.0.1", "came")
    log.note("10.0.0.2", "came")
    log.close()
    assert len(caplog.records) == 2
    log.note("10.0.0.1", "came")
    log.close()
    assert len(caplog.records) == 3
    assert all("rank 3" in record.getMessage() for record in caplog.records)


def test_limit_of_open_files(monkeypatch):
    limits = [100, 4000]
    monkeypatch.setattr(open_files.resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(
        open_files.resource, "setrlimit", lambda _, wanted: limits.__setitem__(0, wanted[0])
    )
    assert sockets.reserve_descriptors(510, 512) == 512
    assert 1000 < limits[0] < 4000
    limits[0] = 100
    assert 100 < sockets.reserve_descriptors(3500, 512) < 512
    assert limits[0] == 4000
    with pytest.raises(InitializationFailed, match="4000"):
        sockets.reserve_descriptors(5000, 512)


# Processes.


def test_a_process_is_watched_until_it_ends():
    with subprocess.Popen(["sleep", "60"]) as child:
        machine, namespace, _, _ = IDENTITY.unpack(process.this_process())
        told = IDENTITY.pack(machine, namespace, child.pid, process.start_time(child.pid))
        watched = process.watch(told)
        if watched is None:
            pytest.skip("this kernel has no pidfd_open")
        assert select.select([watched], [], [], 0)[0] == []
        child.kill()
        assert select.select([watched], [], [], PATIENCE_S)[0] == [watched]
        os.close(watched)


@pytest.mark.parametrize("field", range(4))
def test_a_process_of_another_place_is_not_watched(field):
    """The identity names another machine or PID namespace, or its PID now names another process."""
    values = list(IDENTITY.unpack(process.this_process()))
    values[field] = bytes(32) if field == 0 else 2**32 - 1
    assert process.watch(IDENTITY.pack(*values)) is None


# Tasks.


def test_large_data_through_a_small_socket():
    one, other = socket.socketpair()
    data, got = bytes(range(256)) * 8000, []

    def read():
        got.append((yield from receive(other, len(data))))

    with one, other, contextlib.closing(TaskLoop()) as loop:
        one.setblocking(False)
        other.setblocking(False)
        loop.start(send(one, data))
        loop.start(read())
        assert loop.run(lambda: bool(got), running_s() + PATIENCE_S)
    assert got == [data]
