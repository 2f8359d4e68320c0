import os
import socket
import sys

import pytest

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import LOOPBACK, ReservedPort, with_rendezvous
from cobre_comm.testing import rank_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ports are not reserved here")


def listen(port, host=LOOPBACK):
    """Listen at a port, as rank 0 does."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


@pytest.mark.parametrize("host", [LOOPBACK, "0.0.0.0"])
def test_rank_0_listens_at_a_reserved_port(host):
    with ReservedPort() as reserved, listen(reserved.port, host) as listener:
        with socket.create_connection((LOOPBACK, reserved.port)) as client:
            server, _ = listener.accept()
            with server:
                server.sendall(b"x")
                assert client.recv(1) == b"x"
        with pytest.raises(OSError, match="in use"):
            listen(reserved.port)


def test_the_port_is_free_again_after_the_job():
    reserved = ReservedPort()
    with socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, reserved.port))
        reserved.close()
        other.bind((LOOPBACK, reserved.port))


def test_no_two_jobs_get_the_same_port_nor_does_anybody_else():
    reserved = [ReservedPort() for _ in range(200)]
    ports = {one.port for one in reserved}
    others = [socket.socket() for _ in range(400)]
    for number, other in enumerate(others):
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, number % 2)
        other.bind((LOOPBACK, 0))
    theirs = {other.getsockname()[1] for other in others}
    for one in [*reserved, *others]:
        one.close()
    assert len(ports) == 200
    assert not ports & theirs


def test_nobody_listens_before_rank_0_does():
    with ReservedPort() as reserved:
        for _ in range(200):  # a client whose own port is this one would connect to itself
            with socket.socket() as client, pytest.raises(ConnectionRefusedError):
                client.connect((LOOPBACK, reserved.port))


def test_a_reservation_is_not_inherited():
    with ReservedPort() as reserved:
        assert not os.get_inheritable(reserved._socket.fileno())


def test_only_a_job_over_sockets_on_one_machine_gets_a_port():
    with with_rendezvous(Job(2, "shm")) as job:
        assert job.rendezvous is None
    elsewhere = Job(2, "tcp", nodes=2, rendezvous=Rendezvous("there", 29500, "0.0.0.0"))
    with with_rendezvous(elsewhere) as job:
        assert job is elsewhere
    with with_rendezvous(Job(2, "tcp")) as job:
        assert (job.rendezvous.host, job.rendezvous.bind_addr) == (LOOPBACK, LOOPBACK)
        with listen(job.rendezvous.port):
            pass


def test_test_jobs_reserve_their_ports_too():
    jobs = [rank_environment("tcp", 3) for _ in range(20)]
    ports = {int(job[0]["COBRE_TCP_PORT"]) for job in jobs}
    assert len(ports) == 20
    for port in ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, port))
        listen(port).close()
    assert [rank["COBRE_TCP_RANK"] for rank in jobs[0]] == ["0", "1", "2"]
    assert len({rank["COBRE_TCP_TOKEN"] for rank in jobs[0]}) == 1
