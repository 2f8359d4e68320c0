"""Ranks meet while one bit of the bytes between two of them is flipped on its way."""

import contextlib
import selectors
import socket
import threading

import numpy as np
import pytest

from cobre_comm import InitializationFailed
from cobre_comm.backends.agreement import first_problem
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.nodes.sharing import find_nodes
from cobre_comm.backends.tcp.rendezvous import meet
from tests.faults.tcp import job as jobs
from tests.faults.tcp.job import LOOPBACK, SHORT_MS
from tests.grid import slow

TO_WORKER, TO_RANK_0 = 0, 1
LIMIT_S = 60.0  # for a meeting, which on an idle machine takes SHORT_MS and the 5 s of a handshake


class Proxy:
    """Stands before a port, and flips one bit that the first link carries in one direction.

    ``sent`` counts the bytes that this link has carried in each direction.
    """

    def __init__(self, port, way=TO_WORKER, bit=-1):
        self.port_behind, self.way, self.bit = port, way, bit
        self.sent = [0, 0]
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._run)
        self.stop, self.stopped = socket.socketpair()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.close()
        self.thread.join()

    def _run(self):
        with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
            stack.enter_context(self.stopped)
            selector.register(stack.enter_context(self.listener), selectors.EVENT_READ)
            selector.register(self.stopped, selectors.EVENT_READ)
            is_first = True
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.stopped:
                        return
                    if key.fileobj is self.listener:
                        for one in self._connect(is_first):
                            selector.register(stack.enter_context(one[0]), 1, one[1:])
                            is_first = False
                    elif not self._pass(key.fileobj, *key.data):
                        selector.unregister(key.fileobj)

    def _connect(self, is_first):
        worker, _ = self.listener.accept()
        try:
            rank_0 = socket.create_connection((LOOPBACK, self.port_behind))
        except OSError:  # rank 0 does not listen yet, or has given up
            worker.close()
            return []
        return [(rank_0, worker, is_first, TO_WORKER), (worker, rank_0, is_first, TO_RANK_0)]

    def _pass(self, source, target, is_first, way):
        try:
            data = bytearray(source.recv(4096))
            if is_first:
                place = self.bit // 8 - self.sent[way]
                if way == self.way and 0 <= place < len(data):
                    data[place] ^= 1 << self.bit % 8
                self.sent[way] += len(data)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)
        return bool(data)


def meet_and_agree(config, listener=None):
    """Do what a communicator's constructor does until the start; return what ranks agree on."""
    with meet(config, listener) as participant:
        order = find_nodes(participant, config.share, config.pretend_nodes)
        problem = first_problem(participant, "this rank has none" if config.rank else "")
        rows = participant.gather_rows(np.arange(3) + config.rank)
        participant.start([order.leaders().tolist()])
    participant.links.close()
    return order, problem, rows


@pytest.fixture
def meeting(new_job, monkeypatch):
    """Return a function that lets two ranks meet; it returns their results and numbers of bytes."""
    monkeypatch.setattr(jobs, "rendezvous", meet_and_agree)
    monkeypatch.setattr(jobs, "greet", lambda agreed, rank: None)

    def run(way=TO_WORKER, bit=-1):
        job = new_job(2, connect_timeout_ms=SHORT_MS if bit >= 0 else 20_000)
        with Proxy(job.port, way, bit) as proxy:
            results = job.start(0).start(1, port=proxy.port).wait(LIMIT_S)
        job.close()
        return results, proxy.sent

    return run


def check_agreed(result):
    order, problem, rows = result
    assert isinstance(order, NodeOrder)
    assert (order.leaders().tolist(), order.order.tolist()) == ([0], [0, 1])
    assert problem == "rank 1: this rank has none"
    assert rows.tolist() == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("every", [61, slow(1)])
def test_a_flipped_bit_ends_the_start_or_changes_nothing(meeting, every):
    """Bit n % 8 of byte n is flipped: ranks meet as usual, or get the error of a failed start."""
    results, sent = meeting()
    for rank in range(2):
        check_agreed(results[rank])
    failed = 0
    for way in (TO_WORKER, TO_RANK_0):
        assert sent[way] > 500
        for byte in range(0, sent[way], every):
            results, _ = meeting(way, 8 * byte + byte % 8)
            for result in results.values():
                if isinstance(result, Exception):
                    assert isinstance(result, InitializationFailed), (way, byte, repr(result))
                    failed += 1
                else:
                    check_agreed(result)
    assert failed
