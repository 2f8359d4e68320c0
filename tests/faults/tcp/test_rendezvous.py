"""The ranks of a tcp job meet, and every link leads to the right rank."""

import pathlib
import resource
import socket
import time

import numpy as np
import pytest

from cobre_comm import TcpBackend, create_communicator
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.rendezvous import Participant, handshake, participant
from cobre_comm.backends.tcp.rendezvous.coordinator import EAGER_BYTES, FAR_EAGER_BYTES
from cobre_comm.backends.tcp.rendezvous.sockets import SPARE_DESCRIPTORS
from cobre_comm.config import TcpConfig
from cobre_comm.testing.cases.waiting import wait_until
from tests.faults.tcp.clients import Client, listening
from tests.faults.tcp.job import (
    LOOPBACK,
    SHORT_MS,
    check,
    check_job,
    link_local_address,
    meet_others,
    open_sockets,
    own_address,
)
from tests.forked import on_forks


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_every_link_leads_where_it_should(new_job, size):
    job = new_job(size).start_all()
    check_job(job)
    assert {links.ranks_here for links in job.results.values()} == {size}


def test_ranks_on_several_machines(new_job, monkeypatch):
    def introduce(*told):
        return handshake.introduce(*told)._replace(process=b"another".ljust(52))

    monkeypatch.setattr("cobre_comm.backends.tcp.rendezvous.worker.introduce", introduce)
    results = new_job(3, eager_bytes=None).start_all().wait()
    assert [results[rank].ranks_here for rank in range(3)] == [1, 2, 2]
    assert {links.eager_bytes for links in results.values()} == {FAR_EAGER_BYTES}


def test_ranks_on_one_machine(new_job):
    results = new_job(2, eager_bytes=None).start_all().wait()
    assert {links.eager_bytes for links in results.values()} == {EAGER_BYTES}


def test_one_rank_opens_nothing():
    before = open_sockets()
    with TcpBackend(TcpConfig(rank=0, size=1)):
        assert open_sockets() <= before


def test_parts_have_one_length(new_job, monkeypatch):
    monkeypatch.setattr(Participant, "start", lambda self, _: self.exchange(bytes(self.rank)))
    results = new_job(3).start_all().wait()
    for rank in range(3):
        check(results[rank], "rank 1 gave 1 bytes out of turn, 0 were due")


@on_forks(4, "tcp", connect=False)
def test_in_processes(comm):
    meet_others()


def test_given_listener_is_used_and_closed(new_job):
    listener = socket.create_server((LOOPBACK, 0))
    job = new_job(2, port=listener.getsockname()[1])
    job.start(0, listener=listener, port=1).start(1)
    check_job(job)
    assert listener.fileno() == -1


def test_nobody_listens_any_more(new_job):
    job = new_job(3).start_all()
    check_job(job)
    with pytest.raises(ConnectionRefusedError):
        Client(job.port, patient=False)


@pytest.mark.parametrize(
    ("coordinator", "bind_addr"),
    [
        ("::1", "::1"),
        ("::1", "::"),
        ("127.0.0.1", "::"),
        ("localhost", "localhost"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "0.0.0.0"),
    ],
)
def test_addresses(new_job, coordinator, bind_addr):
    check_job(new_job(3, coordinator=coordinator, bind_addr=bind_addr).start_all())


@pytest.mark.parametrize("bind_addr", ["127.0.0.1", "::1", "both"])
def test_every_address_of_a_name(new_job, monkeypatch, bind_addr):
    known = socket.getaddrinfo

    def getaddrinfo(host, *args, **keywords):
        hosts = ["::1", "127.0.0.1", "127.0.0.1"] if host == "both" else [host]
        return [entry for name in hosts for entry in known(name, *args, **keywords)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    check_job(new_job(3, coordinator="both", bind_addr=bind_addr).start_all())


@pytest.mark.parametrize("near", [1, 2, 3])
def test_worker_beside_rank_0_and_workers_elsewhere(new_job, near):
    # Rank 0 sees one worker at a loopback address, where the other workers cannot reach this
    # worker.
    job = new_job(4, coordinator=own_address(), bind_addr="0.0.0.0").start(0)
    for rank in (1, 2, 3):
        job.start(rank, **({"coordinator": "127.0.0.1"} if rank == near else {}))
    check_job(job)
    link = next(r for r in (1, 2, 3) if r != near)
    assert job.results[link].control[near].getpeername()[0] != LOOPBACK


def test_both_families_in_one_job(new_job):
    job = new_job(4, bind_addr="::").start(0)
    for rank, coordinator in enumerate(["::1", "127.0.0.1", own_address()], 1):
        job.start(rank, coordinator=coordinator)
    check_job(job)


def test_link_local_addresses_have_a_scope(new_job):
    check_job(new_job(3, coordinator=link_local_address(), bind_addr="::").start_all())


def listening_sockets():
    """Return the listening sockets of this process, and those that listen at every address."""
    where = listening()
    found = open_sockets() & {*where}
    return found, {name for name in found if {*where[name][0]} == {"0"}}


@pytest.mark.skipif(not pathlib.Path("/proc/net/tcp6").exists(), reason="looks into /proc")
@pytest.mark.parametrize("bind_addr", ["127.0.0.1", "::1", "0.0.0.0"])
def test_alone_on_a_machine_they_listen_at_loopback_only(new_job, bind_addr):
    before, _ = listening_sockets()
    coordinator = "::1" if bind_addr == "::1" else "127.0.0.1"
    job = new_job(3, coordinator=coordinator, bind_addr=bind_addr).start(0, 1)
    wait_until(lambda: len(listening_sockets()[0] - before) == 2)
    found, everywhere = listening_sockets()
    assert len(found - before) == 2
    assert len(everywhere - before) == (2 if bind_addr == "0.0.0.0" else 0)
    check_job(job.start(2))


@pytest.mark.parametrize("limit_ms", [10_000, 0])
def test_rank_0_comes_last(new_job, limit_ms):
    """A limit of 0 lets ranks wait for rank 0 without end."""
    job = new_job(3, connect_timeout_ms=limit_ms).start(2, 1)
    time.sleep(0.2)
    check_job(job.start(0))


@pytest.mark.parametrize(("ranks", "speakers"), [((0, 1, 2), {0}), ((1, 2), {1, 2})])
def test_rank_0_speaks_for_the_ranks_that_have_found_it(
    new_job, ranks, speakers, monkeypatch, caplog
):
    """Rank 0 logs a missing rank for all attached ranks; without rank 0, each rank logs it."""
    monkeypatch.setattr(participant, "LOG_WAIT_AFTER_S", SHORT_MS / 1000 / 3)
    results = new_job(4, connect_timeout_ms=2 * SHORT_MS).start(*ranks).wait()
    for rank in ranks:
        check(results[rank])
    lines = [record.getMessage() for record in caplog.records]
    assert {int(line.split()[2]) for line in lines if "still waits" in line} == speakers


@pytest.mark.slow
def test_64_ranks(new_job):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 10_000:
        pytest.skip("both ends of all links are in this process")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 10_000), hard))
    job = new_job(64, connect_timeout_ms=60_000).start_all()
    results = job.wait(60.0)
    assert all(isinstance(links, Links) for links in results.values()), results
    for rank in (0, 1, 31, 63):
        assert len(results[rank].data) == 63


@on_forks(8, "tcp:0,0,0,0,1,1,1,1", connect=False)
def test_descriptors_are_reserved_for_links_that_are_used(comm):
    """Of 8 ranks on two nodes, rank 0 has 8 links and the other leader 2, not 2 to each peer."""
    room = len(list(pathlib.Path("/dev/fd").iterdir())) + SPARE_DESCRIPTORS + 14
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))
    with create_communicator() as made:
        assert made.exact_sum(np.full(1, float(made.rank))) == 28.0
