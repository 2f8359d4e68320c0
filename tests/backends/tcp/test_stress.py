"""Where sockets take only a few bytes at a time, results and errors are still right."""

import contextlib
import itertools
import os
import random
import signal
import socket
import threading
import time

import pytest

from cobre_comm import CollectiveFailed, InitializationFailed, create_communicator
from cobre_comm.backends.tcp import memory
from cobre_comm.testing.cases.faults.calling import OPERATIONS, collective, meet_failure
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.waiting import wait_until

pytestmark = pytest.mark.slow  # each test starts processes; `make test` runs the suite's cases

DEFAULT_EAGER_BYTES = 65536
GRID = list(itertools.product([2, 3, 4, 5], [0, 100, 4096, DEFAULT_EAGER_BYTES]))
SOON_S = 20.0  # long before the timeout, also on a busy machine
RECEIVE_BYTES = 65536


def settings(eager_bytes):
    return {"COBRE_TCP_EAGER_BYTES": str(eager_bytes)}


def tighten(comm):
    """Let sockets buffer little: the least for sending, and few bytes for receiving.

    If the buffer for receiving were smaller, a full window would open only when TCP probes the
    window, five times a second.
    """
    for sock in comm._membership.transport.links.data.values():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    comm.barrier()


class Trickle:
    """Puts a pump into every link; each pump passes on a few bytes at a time."""

    def __init__(self, comm, seed, pause_s=0.0):
        self._draw, self._pause_s, self._stop = random.Random(seed), pause_s, False
        self._kept, self._ours, self._threads = [], [], []
        sockets, links = comm._membership.transport.links, comm._comm.links
        for rank in sockets.data:
            links.peers[rank].data_fd = self._pump(sockets.data[rank])
            links.peers[rank].control_fd = self._pump(sockets.control[rank])

    def _pump(self, link):
        """Start a pump for a link; return the descriptor of the near end."""
        near, far = socket.socketpair()
        near.setblocking(False)
        link.setblocking(True)
        self._kept += [near, far]
        self._ours.append(near)
        for source, target in ((far, link), (link, far)):
            thread = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
            self._threads.append(thread)
            thread.start()
        return near.fileno()

    def _pass_on(self, source, target):
        with contextlib.suppress(OSError):
            while octets := source.recv(self._draw.randrange(1, 30)):
                target.sendall(octets)
                time.sleep(0.0 if self._stop else self._pause_s)
            target.shutdown(socket.SHUT_WR)

    def close(self, comm):
        """Remove the pumps, and close the communicator."""
        self._stop = True
        for sock in self._ours:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10.0)
            assert not thread.is_alive()
        comm.close()
        for sock in self._kept:
            sock.close()


def work(comm, seed, count):
    """Call random collectives, verified; some payloads have a MiB, more than a socket buffers."""
    tighten(comm)
    sequences.random_operations(comm, "either", seed, count, 150_000)


@pytest.mark.parametrize(("size", "eager_bytes"), GRID)
def test_small_sockets(pools, size, eager_bytes):
    pool, env = pools.get("tcp-flat", size), settings(eager_bytes)
    for seed in range(100, 105):
        pool.run(work, seed, 40, env=env, fresh=True)


def work_by_bytes(comm, seed, count):
    trickle = Trickle(comm, seed)
    sequences.random_operations(comm, "either", seed, count, 150)
    comm.barrier()
    time.sleep(0.3)  # until the pumps are empty
    trickle.close(comm)


@pytest.mark.parametrize("size", [2, 3])
def test_a_few_bytes_at_a_time(pools, size):
    for eager_bytes in (0, 4096):
        pool = pools.get("tcp-flat", size)
        pool.run(work_by_bytes, size, 25, env=settings(eager_bytes), fresh=True)


@pytest.mark.ranks(3, backends=["tcp-flat"])
def test_failure_report_a_few_bytes_at_a_time(comm):
    trickle = Trickle(comm, 1)
    comm.barrier()
    caught, *_ = meet_failure(comm, "python", "allreduce", length=5 + comm.rank % 2)
    time.sleep(0.5)  # until all ranks have read the failure report
    trickle.close(comm)
    assert "rank 1 called allreduce(SUM, float64, 6 elements)" in str(caught)


@pytest.mark.ranks(2, 3, backends=["tcp-flat"], env=settings(2**26))
def test_disagreement_about_large_payloads(comm, caller):
    """No rank reads the rest of a payload, so no rank may wait until all of its payload is sent."""
    tighten(comm)
    began = time.monotonic()
    length = 1_000_000 + (comm.rank == comm.size - 1)  # more bytes than any socket buffers
    caught, at, _, _ = meet_failure(comm, caller, "allreduce", length=length)
    assert isinstance(caught, CollectiveFailed)
    assert "disagree" in str(caught)
    assert at - began < SOON_S


@pytest.mark.ranks(3, backends=["tcp-flat"], env=settings(100))
def test_interrupt_while_bytes_come(comm, caller):
    """Ctrl-C reaches rank 1 during a transfer over links so slow that bytes arrive all the time.

    Another thread takes the signal, so the signal interrupts no system call of the thread that
    waits in the collective.
    """
    for operation in OPERATIONS:
        collective(comm, caller, operation)
    trickle, sent = Trickle(comm, 1, pause_s=0.001), []

    def interrupt():
        time.sleep(0.5)
        sent.append(time.monotonic())
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    if comm.rank == 1:
        threading.Thread(target=interrupt).start()
    caught, at, _, _ = meet_failure(comm, caller, "broadcast", length=100_000)
    time.sleep(0.5)  # until all ranks have read the failure report
    trickle.close(comm)
    if comm.rank == 1:
        assert isinstance(caught, KeyboardInterrupt)
        assert at - sent[0] < SOON_S
    else:
        assert caught.ranks == (1,)


@pytest.mark.ranks(3, backends=["tcp-flat"])
@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_control_message_that_came_before_the_step(comm, tmp_path, how):
    """Rank 1 knows from the start that rank 2 has gone, and so does not wait for a late rank 0."""
    met = tmp_path / "met"
    comm.barrier()
    if comm.rank == 2 and how == "close":
        comm.close()
    elif comm.rank == 2:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with contextlib.suppress(KeyboardInterrupt):
            comm.barrier()
    elif comm.rank == 1:
        time.sleep(0.6)  # until rank 2 has gone
        comm._comm.links.swept = -1000  # makes the step begin by reading all control messages
        caught, *_ = meet_failure(comm, "python", "barrier")
        met.touch()
        assert caught.ranks == (2,)
    else:
        assert wait_until(met.exists)


@pytest.mark.ranks(2, backends=["tcp-flat"], connect=False)
def test_no_memory_for_the_inboxes(comm, monkeypatch):
    """The constructor raises an error and closes its links; the process does not crash."""

    def refuse(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(memory, "link_record", refuse)
    assert "eager_bytes" in str(raises(InitializationFailed, create_communicator))
