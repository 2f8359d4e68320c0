"""How a leader over sockets handles wrong, late or missing bytes; the test is its only peer.

Run as a program, this file runs its own tests: ``test_without_compilation`` starts it.
"""

import ctypes
import itertools
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM, DIED, GARBLED, GAVE_UP, LEFT, PRESENT
from cobre_kernels.collective.reduction.fold import MAX, fold_kernel
from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.collective.status import LOST_PEER, OK
from cobre_kernels.collective.waiting.patience import LONG_AGO_NS, Patience
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.nodes import round
from cobre_kernels.nodes.messages import (
    ANSWER,
    GOODBYE,
    QUERY,
    RAISED,
    REPORT,
    goodbye_kernel,
    report_kernel,
)
from cobre_kernels.nodes.protocol import ENTERED, MOVING
from cobre_kernels.nodes.records import STAGING
from cobre_kernels.nodes.verbs import Chain, Exchange, Gather, Scatter
from cobre_kernels.tcp import tags
from cobre_kernels.tcp.frame import FRAME_HEADER_BYTES
from cobre_kernels.tcp.hops import exchange_by_hops_kernel
from cobre_kernels.tcp.links import CHUNK_BYTES
from cobre_kernels.tcp.progress.sockets import NS_PER_MS, receive_all, send_all
from numba import config

from cobre_comm.backends.comm_memory import comm_words
from cobre_comm.backends.journals import Journals
from cobre_comm.backends.nodes.memory import NodesMemory
from cobre_comm.backends.nodes.node_order import node_order_of
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.memory import VERBS, go_by_hops, link_record
from tests.kernels import programs

EAGER_BYTES = 64
VERB = 3  # the number of the next verb that the leader begins
SIGNATURE = 77
PATIENCE_MS = 60_000


class Peer:
    """The leader of the other node: a test holds this leader's ends of the links.

    ``comm`` is the communicator of the leader under test. The leader under test waits without a
    limit, so a test sends the bytes that end the wait before it calls a verb. ``data`` is the
    test's end of the data link with the first of the other nodes, and ``next`` the test's end of
    the data link with the last of them. With two nodes, ``data`` and ``next`` are the same.
    """

    def __init__(self, own=0, size=2):
        words = comm_words(size)
        self.comm = comm = COMM.of(words)
        comm.rank, comm.size = own, size
        self.journals = Journals(comm)
        order = node_order_of(range(size), own)
        self.memory = NodesMemory(comm, words, order, VERBS)
        comm.nodes = self.memory.nodes
        comm.nodes.state, comm.nodes.begun = ENTERED, VERB - 1
        self.memory.stage_at(self.memory.record(STAGING, size).address)
        comm.fold_kernel = fold_kernel.address
        comm.signature = comm.nodes.header.signature = SIGNATURE
        self.sockets, control_links, data_links = [], {}, {}
        for other in (rank for rank in range(size) if rank != own):
            self.next, data = socket.socketpair()
            control_end, control = socket.socketpair()
            self.sockets += [self.next, data, control_end, control]
            for sock in (data, control):
                sock.setblocking(False)
            data_links[other], control_links[other] = data, control
        self.data, _, self.control, _ = self.sockets[:4]
        links = Links(control_links, data_links, eager_bytes=EAGER_BYTES)
        comm.links = link_record(self.memory, links, order)
        self.record = comm.links.peers[min(data_links)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in self.sockets:
            sock.close()

    def send_header(self, payload_bytes=0, verb=VERB, signature=SIGNATURE):
        following = FRAME_HEADER_BYTES - tags.LENGTH_BYTES + payload_bytes
        self.data.sendall(
            struct.pack(">IBBHqqqq", following, tags.EXCHANGE, 0, 0, verb, signature, 0, 0)
        )

    def exchange(self, payload=b""):
        kernel = exchange_by_hops_kernel if self.comm.links.ends.address else VERBS.exchange
        held = np.frombuffer(payload or bytes(1), np.uint8)
        call = Exchange(round.LEADER_HEADER_BYTES, address(held), len(payload))
        return kernel.call(self.comm.address, *call)

    def reasons(self):
        return [self.comm.failures[rank].reason for rank in range(2)]


@pytest.fixture(params=[False, True], ids=["all to all", "by hops"])
def peer(request):
    with Peer() as made:
        if request.param:
            go_by_hops(made.memory, made.comm.links)
        yield made


def control_frame(kind, number, words=b"", length=None):
    following = tags.TAG_BYTES + 8 + len(words) if length is None else length
    return struct.pack(">IBq", following, tags.FIRST_CONTROL + kind, number) + words


def prefix(tag, payload_bytes):
    return struct.pack(">IB", tags.TAG_BYTES + payload_bytes, tag)


def address(array):
    return array.ctypes.data


# Tests of control messages.


def test_a_control_message_that_comes_in_two_parts(peer):
    goodbye = control_frame(GOODBYE, VERB)
    peer.control.sendall(goodbye[:5])
    peer.comm.links.swept = -1000  # makes a verb begin by reading all control messages
    peer.send_header()
    assert peer.exchange() == OK
    peer.control.sendall(goodbye[5:])
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, LEFT]


@pytest.mark.parametrize(
    "data",
    [
        control_frame(GOODBYE + 1, VERB),
        control_frame(-1, VERB),
        control_frame(GOODBYE, VERB, length=10),
        control_frame(QUERY, 0, b"more"),
        control_frame(RAISED, 2, bytes(RAISED_BYTES)),  # names a rank that does not exist
        control_frame(RAISED, -1, bytes(RAISED_BYTES)),
        control_frame(RAISED, 1, bytes(RAISED_BYTES))[:-1],
        control_frame(REPORT, VERB, bytes(16))[:-1],
    ],
    ids=[
        "kind", "tag", "length", "words", "no rank", "below 0", "half an exception",
        "half a report",
    ],
)  # fmt: skip
def test_a_control_message_that_is_not_of_the_protocol(peer, data):
    peer.control.sendall(data)
    peer.control.shutdown(socket.SHUT_WR)
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, GARBLED]


def test_a_query_is_answered_and_an_answer_is_not(peer):
    for kind in (QUERY, ANSWER, QUERY):
        peer.control.sendall(control_frame(kind, 0))
    peer.comm.links.swept = -1000
    peer.send_header()
    assert peer.exchange() == OK
    assert peer.control.recv(1000) == 2 * control_frame(ANSWER, 0)


@pytest.mark.parametrize("kind", [GOODBYE, REPORT])
def test_who_has_completed_a_verb_is_no_loss_to_it(peer, kind):
    words = struct.pack(">qq", PRESENT, DIED) if kind == REPORT else b""
    peer.control.sendall(control_frame(kind, VERB, words))
    peer.comm.links.swept = -1000
    peer.send_header()
    assert peer.exchange() == OK
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, DIED if kind == REPORT else LEFT]


def test_the_end_of_a_link_adds_nothing_to_a_goodbye(peer):
    peer.control.sendall(control_frame(GOODBYE, 0))
    peer.control.close()
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, LEFT]


def test_who_has_reported_says_no_goodbye(peer):
    report_kernel.call(peer.comm.address, *BodyStatus(LOST_PEER))
    goodbye_kernel.call(peer.comm.address)
    report = control_frame(REPORT, 0, struct.pack(">qq", PRESENT, PRESENT))
    assert peer.control.recv(1000) == report


@pytest.mark.parametrize("told", [None, GOODBYE])
def test_a_process_that_has_ended_while_its_links_stand(peer, told):
    """A child may keep the links open. What the process sent before it ended is read first."""
    reader, writer = socket.socketpair()
    peer.sockets += [reader, writer]
    writer.sendall(b"ended")
    peer.record.process_fd = reader.fileno()
    if told is not None:
        peer.control.sendall(control_frame(told, 0))
    assert VERBS.read.call(peer.comm.address) == OK
    assert peer.comm.nodes.leaders[1].condition == (DIED if told is None else LEFT)


@pytest.mark.parametrize("what", ["nothing", "room", "bytes", "a message", "an end"])
def test_what_wakes_a_leader_that_blocks(peer, what):
    """The leader polls again after it wakes, unless it wakes because data can move."""
    comm, peer.record.payload_left = peer.comm, int(what == "room")
    peer.record.wanted = 1
    if what == "bytes":
        peer.data.sendall(b"1")
    elif what == "a message":
        peer.control.sendall(control_frame(ANSWER, 0))
    elif what == "an end":
        reader, writer = socket.socketpair()
        peer.sockets += [reader, writer]
        writer.sendall(b"ended")
        peer.record.process_fd = reader.fileno()
    assert VERBS.block.call(comm.address, *Patience(NS_PER_MS)) == OK
    assert comm.wait.looked_ns == (0 if what in ("room", "bytes") else LONG_AGO_NS)
    assert comm.nodes.leaders[1].heard_ns == 0


def test_links_that_this_process_has_closed(peer):
    for sock in peer.sockets[1], peer.sockets[3]:
        os.close(sock.detach())
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [GAVE_UP, PRESENT]


# Tests of bulk data.


@pytest.mark.parametrize("payload_bytes", [-1, EAGER_BYTES + 1])
def test_a_header_of_another_call_with_a_payload_that_none_can_have(peer, payload_bytes):
    peer.send_header(payload_bytes, signature=SIGNATURE + 1)
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, GARBLED]


def test_a_header_of_another_verb(peer):
    peer.send_header(verb=VERB + 1)
    assert peer.exchange() == LOST_PEER
    assert peer.reasons() == [PRESENT, GARBLED]


# Bundles of an exchange by hops.


def message(payload=b"", verb=VERB, signature=SIGNATURE, length=None):
    """Return a message as it is in a bundle."""
    following = FRAME_HEADER_BYTES - tags.LENGTH_BYTES
    following += len(payload) if length is None else length
    header = struct.pack(">IBBHqqqq", following, tags.EXCHANGE, 0, 0, verb, signature, 0, 0)
    return header + payload + bytes(-len(payload) % 8)


class Four(Peer):
    """Node 0 of four is under test: node 3 sends to it first, then node 2, for node 1 as well."""

    def __init__(self):
        super().__init__(0, size=4)
        go_by_hops(self.memory, self.comm.links)
        self.near, self.far = self.sockets[8], self.sockets[4]
        self.landed = np.zeros((4, 8), np.uint8)
        nodes = self.comm.nodes
        for node in range(4):
            nodes.landing[node] = address(self.landed[node])
            nodes.recv_bytes[node] = 5

    def reasons(self):
        return [self.comm.failures[rank].reason for rank in range(4)]


@pytest.fixture
def four():
    with Four() as made:
        yield made


@pytest.mark.parametrize("parts", [[], [1], [40], [43], [48], [50], [3, 88, 95], range(1, 96)])
def test_a_bundle_that_comes_in_parts(four, parts):
    four.near.sendall(message(b"node3"))
    bundle = message(b"node2") + message(b"node1")

    def send():
        for begin, end in itertools.pairwise([0, *parts, len(bundle)]):
            four.far.sendall(bundle[begin:end])
            time.sleep(0.002)

    sender = threading.Thread(target=send)
    sender.start()
    assert four.exchange(b"node0") == OK
    sender.join()
    assert four.data.recv(1000) == message(b"node0")
    assert four.far.recv(1000) == message(b"node0") + message(b"node3")
    assert [bytes(row[:5]) for row in four.landed[1:]] == [b"node1", b"node2", b"node3"]


@pytest.mark.parametrize(
    ("odd", "is_right"),
    [
        (message(b"", signature=SIGNATURE + 1), True),
        (message(bytes(EAGER_BYTES), signature=SIGNATURE + 1), True),
        (message(b"node1", verb=VERB + 1), False),
        (message(b"node1", length=6), False),
        (message(b"node1", signature=SIGNATURE + 1, length=EAGER_BYTES + 1), False),
        (message(b"node1", signature=SIGNATURE + 1, length=-1), False),
    ],
    ids=["shorter", "longer", "verb", "length", "too long", "below 0"],
)
@pytest.mark.parametrize("place", ["near", "far", "behind"])
def test_a_message_of_another_call_or_of_no_protocol(four, odd, is_right, place):
    """The sender of a message is named, also if it has passed on the message of another leader."""
    near, far, behind = (
        odd if name == place else message(right)
        for name, right in (("near", b"node3"), ("far", b"node2"), ("behind", b"node1"))
    )
    four.near.sendall(near)
    four.far.sendall(far + behind)
    for sock in (four.near, four.far):  # ends a message that is too short
        sock.shutdown(socket.SHUT_WR)
    assert four.exchange(b"node0") == (OK if is_right else LOST_PEER)
    if is_right:
        assert four.far.recv(1000) == message(b"node0") + near
        landed = [b"node1", b"node2", b"node3"]
        landed[["behind", "far", "near"].index(place)] = bytes(5)
        assert [bytes(row[:5]) for row in four.landed[1:]] == landed
    else:
        named = [PRESENT] * 4
        named[3 if place == "near" else 2] = GARBLED
        assert four.reasons() == named


def test_a_frame_behind_a_shorter_message_is_kept_for_the_ring(four):
    following = prefix(tags.BLOCK, 8)
    four.near.sendall(message(signature=SIGNATURE + 1) + following[:3])
    four.far.sendall(message(b"node2") + message(b"node1"))
    assert four.exchange(b"node0") == OK
    peer = four.comm.links.peers[3]
    assert peer.surplus_bytes == 3
    assert ctypes.string_at(peer.surplus, 3) == following[:3]


def test_a_frame_behind_a_bundle_of_a_later_hop_is_garbled(four):
    four.near.sendall(message(b"node3"))
    four.far.sendall(message(b"node2") + message(signature=SIGNATURE + 1) + b"more")
    assert four.exchange(b"node0") == LOST_PEER
    assert four.reasons() == [PRESENT, PRESENT, GARBLED, PRESENT]


def gather(peer, nbytes):
    """Gather ``nbytes`` bytes of each leader; return the status, and the buffer."""
    nodes, buffer = peer.comm.nodes, np.full(2 * nbytes, 3, np.uint8)
    nodes.state = MOVING
    for node in range(2):
        nodes.block_bytes[node], nodes.block_at[node] = nbytes, node * nbytes
    return VERBS.allgatherv.call(peer.comm.address, *Gather(address(buffer), 1)), buffer


def reduce(peer, values):
    """Take the maximum of two leaders; return the status, and the result."""
    result = np.zeros_like(values)
    peer.comm.nodes.state = MOVING
    call = Chain(address(values), 0, 1, address(result), values.nbytes, dtypes.FLOAT64, MAX)
    return VERBS.chain.call(peer.comm.address, *call), result


@pytest.mark.parametrize(
    "move", [lambda peer: gather(peer, 8), lambda peer: reduce(peer, np.ones(1))]
)
@pytest.mark.parametrize(
    "data", [prefix(tags.BLOCK, 7), prefix(tags.RESULT, 8)], ids=["length", "tag"]
)
def test_a_frame_that_is_not_the_one_due(peer, move, data):
    peer.data.sendall(data)
    outcome, _ = move(peer)
    assert outcome == LOST_PEER
    assert peer.reasons() == [PRESENT, GARBLED]


@pytest.mark.parametrize(
    "move", [lambda peer: gather(peer, 8), lambda peer: reduce(peer, np.ones(1))]
)
def test_a_data_link_that_ends_before_a_frame_is_sent(peer, move):
    peer.data.close()
    outcome, _ = move(peer)
    assert outcome == LOST_PEER
    assert peer.reasons() == [PRESENT, DIED]


def test_a_data_link_that_ends_before_a_frame_has_come(peer):
    peer.data.shutdown(socket.SHUT_WR)
    outcome, _ = gather(peer, 8)
    assert outcome == LOST_PEER
    assert peer.reasons() == [PRESENT, DIED]


def scatter(peer):
    peer.comm.nodes.state = MOVING
    return VERBS.alltoallv.call(peer.comm.address, *Scatter(0, 0))


@pytest.mark.parametrize(
    "move",
    [
        Peer.exchange,
        scatter,
        lambda peer: gather(peer, 8)[0],
        lambda peer: reduce(peer, np.ones(1))[0],
    ],
    ids=["exchange", "alltoallv", "allgatherv", "chain"],
)
def test_after_a_loss_nothing_is_sent(peer, move):
    peer.control.sendall(control_frame(GOODBYE, 0))
    peer.comm.links.swept = -1000
    assert move(peer) == LOST_PEER
    peer.sockets[1].close()
    assert peer.data.recv(1) == b""


@pytest.mark.parametrize(
    ("tag", "move"),
    [
        (tags.BLOCK, lambda peer: gather(peer, 8)),
        (tags.PARTIAL, lambda peer: reduce(peer, np.zeros(1))),
    ],
    ids=["allgatherv", "chain"],
)
def test_a_frame_that_comes_later_than_its_prefix(peer, tag, move):
    theirs = np.full(1, 5.0).tobytes()
    peer.data.sendall(prefix(tag, 8))
    threading.Timer(0.1, peer.data.sendall, (theirs,)).start()
    outcome, result = move(peer)
    assert outcome == OK
    assert result.tobytes()[-8:] == theirs


def test_a_leader_between_two_others_folds_and_sends_on():
    """The leader sends what it has folded to the next leader, which sends back the result."""
    theirs, ours, everybody_s = np.array([1.0, 4.0]), np.array([2.0, 3.0]), np.array([2.0, 5.0])
    with Peer(1, size=3) as peer:
        for tag, values in (tags.PARTIAL, theirs), (tags.RESULT, everybody_s):
            peer.data.sendall(prefix(tag, 16) + values.tobytes())
        outcome, result = reduce(peer, ours)
        assert outcome == OK
        assert peer.next.recv(100) == prefix(tags.PARTIAL, 16) + np.array([2.0, 4.0]).tobytes()
    assert result.tolist() == everybody_s.tolist()


@pytest.mark.parametrize("own", [0, 1])
def test_two_leaders_fold_in_the_order_of_nodes(own):
    """If both values are NaN, both leaders get the NaN of node 0."""
    theirs, ours = (np.frombuffer(struct.pack("<Q", 0x7FF8 << 48 | n)) for n in (1, 2))
    with Peer(own) as peer:
        peer.data.sendall(prefix(tags.PARTIAL, 8) + theirs.tobytes())
        outcome, result = reduce(peer, ours)
        assert outcome == OK
        first = theirs if own else ours
        assert result.tobytes() == first.tobytes()
        assert peer.data.recv(100) == prefix(tags.PARTIAL, 8) + ours.tobytes()


def test_a_leader_that_sends_before_it_reads(peer, tmp_path):
    """More chunks arrive than the stage can hold; none is overwritten before it is folded."""
    count, chunk = 8 * CHUNK_BYTES // 8, CHUNK_BYTES // 8
    theirs, ours = (np.random.default_rng(seed).random(count) for seed in (1, 2))

    def frames(values):
        chunks = [values[begin:][:chunk].tobytes() for begin in range(0, count, chunk)]
        return b"".join(prefix(tags.PARTIAL, CHUNK_BYTES) + data for data in chunks)

    sent, came = tmp_path / "sent", tmp_path / "came"
    sent.write_bytes(frames(theirs))
    script = f"cat {sent} & sleep 0.3; cat > {came}"
    with subprocess.Popen(["sh", "-c", script], stdin=peer.data, stdout=peer.data):
        outcome, result = reduce(peer, ours)
        peer.sockets[1].close()
    assert outcome == OK
    np.testing.assert_array_equal(result, np.maximum(theirs, ours))
    assert came.read_bytes() == frames(ours)


# Tests of transfers: more bytes than a socket takes, or has, at a time.


class Bytes(NamedTuple):
    fd: int
    begin: int
    count: int
    patience_ms: int


@kernel(COMM, Bytes)
def send_kernel(comm, call):
    send_all(comm, call.fd, call.begin, call.count, call.patience_ms)
    return OK


@kernel(COMM, Bytes)
def receive_kernel(comm, call):
    return receive_all(comm, call.fd, call.begin, call.count, call.patience_ms)


DATA = np.arange(4 * 2**20, dtype=np.uint32).view(np.uint8)


def run(transfer, peer, array, patience_ms):
    call = Bytes(peer.record.control_fd, address(array), array.nbytes, patience_ms)
    return transfer.call(peer.comm.address, *call)


def test_more_than_a_socket_takes_is_sent_as_it_is_read(peer):
    reader = subprocess.Popen(["cksum"], stdin=peer.control, stdout=subprocess.PIPE)
    with reader:
        run(send_kernel, peer, DATA, PATIENCE_MS)
        peer.sockets[3].shutdown(socket.SHUT_WR)
        found = reader.communicate()[0]
    assert found == subprocess.run(["cksum"], input=DATA.tobytes(), capture_output=True).stdout


def test_what_nobody_reads_is_given_up(peer):
    run(send_kernel, peer, DATA, 1)
    peer.sockets[3].close()
    sent = 0
    while piece := peer.control.recv(2**20):
        sent += len(piece)
    assert 0 < sent < DATA.nbytes


@pytest.mark.parametrize(("count", "came"), [(2, True), (3, False)])
def test_what_comes_piece_by_piece(peer, count, came):
    """The stream ends after two pieces of 8 bytes each, so a third number never arrives."""
    command = "printf 12345678; sleep 0.1; printf 12345678"
    array = np.zeros(count, np.int64)
    with subprocess.Popen(["sh", "-c", command], stdout=peer.control):
        peer.control.close()
        assert run(receive_kernel, peer, array, PATIENCE_MS) == came
    assert array[:2].tobytes() == 2 * b"12345678"


def test_what_does_not_come_is_given_up(peer):
    peer.control.sendall(b"1234567")
    assert not run(receive_kernel, peer, np.zeros(1, np.int64), 1)


@pytest.mark.slow
@pytest.mark.skipif(config.DISABLE_JIT, reason="is what runs them so")
def test_without_compilation():
    programs.output_of("test_links", NUMBA_DISABLE_JIT="1")


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]))
