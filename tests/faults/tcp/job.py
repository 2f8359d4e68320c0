"""Ranks of the tcp backend, as threads of one process: they make their links, but nothing else."""

import contextlib
import os
import pathlib
import socket
import threading
import time

import pytest
from cobre_kernels.tcp import tags

from cobre_comm import InitializationFailed
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.rendezvous import meet, worker
from cobre_comm.backends.tcp.rendezvous.messages import pack_checked
from cobre_comm.config import TcpConfig
from cobre_comm.processes.port import ReservedPort
from cobre_comm.testing.cases.waiting import wait_until
from tests.faults.odd import descriptors
from tests.faults.tcp.clients import ACK, Client

TOKEN = "the-secret-of-this-job"
EAGER_BYTES = 4321
LOOPBACK = "127.0.0.1"
SHORT_MS = 600  # a connect timeout so short that a test can wait for its end


def open_sockets():
    return {text.partition(" ")[2] for text in descriptors() if " socket" in text}


def rendezvous(config, listener=None):
    """Link this rank to all others, as if each rank were alone on its node; return the links."""
    with meet(config, listener) as participant:
        participant.start([range(config.size)])
    return participant.links


def own_rank():
    return int(os.environ["COBRE_TCP_RANK"])


def meet_others():
    """Meet the other ranks, as the rank that the environment names, in a process of its own."""
    config = TcpConfig.from_env()
    links = rendezvous(config)
    greet(links, config.rank)
    check_greetings(links, config.rank)
    links.close()


def once_attached(act):
    """Let a worker of this process call ``act`` as soon as rank 0 has accepted the worker."""
    control = worker.Joiner._open_control

    def attached(self):
        found = control(self)
        act()
        return found

    worker.Joiner._open_control = attached


def wait_for(*paths):
    """Wait until there is a file at each of these paths."""
    assert wait_until(lambda: all(path.exists() for path in paths))


class Job:
    """A job of ranks in threads; the result of each rank is its links or its exception."""

    def __init__(self, size, **config):
        self.size = size
        self._reserved = ReservedPort("0.0.0.0")
        self.config = {
            "coordinator": LOOPBACK,
            "bind_addr": LOOPBACK,
            "port": self._reserved.port,
            "token": TOKEN,
            "connect_timeout_ms": 10_000,
            **config,
        }
        self.port = self.config["port"]
        self.results = {}
        self.took_s = {}
        self._threads = {}

    def start(self, *ranks, listener=None, **changes):
        for rank in ranks:
            eager = {"eager_bytes": EAGER_BYTES + rank}  # the value of rank 0 holds for all ranks
            arguments = {"rank": rank, "size": self.size, **eager, **self.config, **changes}
            arguments = rank, TcpConfig(**arguments), listener if rank == 0 else None
            thread = threading.Thread(target=self._run, args=arguments, daemon=True)
            self._threads[rank] = thread
            thread.start()
        return self

    def start_all(self):
        return self.start(*range(self.size))

    def _run(self, rank, config, listener):
        began = time.monotonic()
        try:
            links = rendezvous(config, listener)
            greet(links, rank)
            result = links
        except Exception as error:
            result = error
        self.took_s[rank] = time.monotonic() - began
        self.results[rank] = result

    def wait(self, limit_s=20.0):
        """Return the result of every rank that was started, by rank."""
        deadline = time.monotonic() + limit_s
        for rank, thread in self._threads.items():
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"rank {rank} is still busy"
        return self.results

    def close(self):
        for rank, thread in self._threads.items():
            thread.join(20.0)
            if isinstance(self.results.get(rank), Links):
                self.results[rank].close()
        self._reserved.close()


def named_links(links):
    """Yield (peer, purpose, socket) for each link of a rank."""
    for purpose, sockets in ((tags.CONTROL, links.control), (tags.DATA, links.data)):
        for peer, sock in sockets.items():
            yield peer, purpose, sock


def greet(links, rank):
    """Send sender, receiver and purpose on every link, as a collective may, before reading any."""
    for peer, purpose, sock in named_links(links):
        sock.send(bytes([rank, peer, purpose]))


def check_greetings(links, rank):
    """Receive on every link the greeting of its other end, and nothing else."""
    for peer, purpose, sock in named_links(links):
        sock.settimeout(20.0)
        greeting = sock.recv(3, socket.MSG_WAITALL)
        assert greeting == bytes([peer, rank, purpose]), (rank, peer, purpose, greeting)
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert sock.recv(1) == b""  # no data: the other side may have closed the link already


def check_job(job):
    """Check that every rank has all its links, and that each link leads to the right rank."""
    results = job.wait()
    for rank in range(job.size):
        links = results[rank]
        assert isinstance(links, Links), (rank, links)
        assert links.eager_bytes == EAGER_BYTES
        check_options(links, rank, job.size)
    for rank in range(job.size):
        check_greetings(results[rank], rank)


def check_options(links, rank, size):
    others = set(range(size)) - {rank}
    assert set(links.control) == set(links.data) == others
    for _, _, sock in named_links(links):
        assert not sock.getblocking()
        assert not sock.get_inheritable()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def check(error, *words):
    assert isinstance(error, InitializationFailed), error
    assert error.backend == "tcp"
    assert all(word in str(error) for word in words), str(error)
    assert TOKEN not in str(error)


def attach(job, rank, **changes):
    """Attach as if this were another rank; return the connection."""
    client = Client(job.port)
    tag, _ = client.introduce(TOKEN, rank=rank, size=job.size, **changes)
    assert tag == ACK
    return client


def ask_for_peers(client):
    """As an attached rank, receive JOB and ask where leaders listen; return the answer's tag."""
    assert client.frame()[0] == tags.JOB
    client.send(pack_checked(tags.PART))
    return client.frame()[0]


def own_address():
    """Return an IPv4 address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no network interface")
        return probe.getsockname()[0]


def link_local_address():
    path = pathlib.Path("/proc/net/if_inet6")
    for line in path.read_text().splitlines() if path.exists() else []:
        digits, *_, name = line.split()
        if digits.startswith("fe80"):
            return f"{socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))}%{name}"
    return pytest.skip("no link-local address")
