"""The handshake, byte by byte."""

import contextlib
import socket
import struct

import pytest
from cobre_kernels.shm.control import PLACE_BYTES
from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.process import this_process
from cobre_comm.backends.tcp.rendezvous.event_loop import TaskLoop
from cobre_comm.backends.tcp.rendezvous.handshake import (
    OWN_BYTE_ORDER,
    AuthenticationFailed,
    Handshake,
    Refused,
    handshake_as_acceptor,
    handshake_as_connector,
)
from cobre_comm.system.running_time import running_s
from tests.backends.tcp.peer_task import PATIENCE_S, PeerTask
from tests.faults.tcp.clients import (
    CHALLENGE_FORMAT,
    FIELDS_FORMAT,
    HANDSHAKE_BYTES,
    MAGIC,
    frame,
    handshake,
    proof,
)

KEY = b"the key of this test"
FIELDS = Handshake(
    rank=2,
    size=5,
    version=3,
    byte_order=OWN_BYTE_ORDER,
    purpose=1,
    target=0,
    port=4711,
    process=bytes(range(52)),
    sources=4712,
    place=bytes(PLACE_BYTES),
)
ADMITTED = struct.pack(">I", 5) + this_process()
SHORT_S = 0.1  # the limit of a handshake, where a test waits until the limit is over


def accepting(refusal=None, limit_s=PATIENCE_S):
    def task(sock, until):
        return handshake_as_acceptor(sock, lambda _: KEY, lambda _: refusal, until)

    return PeerTask(task, limit_s)


def connecting(first=None, limit_s=PATIENCE_S):
    def task(sock, until):
        return handshake_as_connector(sock, lambda _: FIELDS, KEY, until)

    return PeerTask(task, limit_s, first or frame(0x0B, challenge_of()))


def ack(transcript, role=b"accepting"):
    return frame(0x09, ADMITTED + proof(KEY, role, transcript + ADMITTED))


def challenge_of(version=tags.PROTOCOL_VERSION, magic=MAGIC):
    return struct.pack(CHALLENGE_FORMAT, magic, version, 1, bytes(range(32)))


def check_answer(peer, challenge=None):
    """Check the answer of a connecting side to a challenge; return the transcript."""
    challenge, answer = challenge or challenge_of(), peer.receive()
    assert len(answer) == HANDSHAKE_BYTES
    assert struct.unpack(FIELDS_FORMAT, answer[5:-32])[:-1] == FIELDS[:-1]
    transcript = challenge + answer[5:-32]
    assert answer[-32:] == proof(KEY, b"connecting", transcript)
    return transcript


def test_both_sides_agree():
    results = []
    one, other = socket.socketpair()

    def collect(task):
        results.append((yield from task))

    with one, other, contextlib.closing(TaskLoop()) as loop:
        for sock in (one, other):
            sock.setblocking(False)
        loop.start(collect(handshake_as_acceptor(one, lambda _: KEY, lambda _: None, 1e18)))
        loop.start(collect(handshake_as_connector(other, lambda _: FIELDS, KEY, 1e18)))
        assert loop.run(lambda: len(results) == 2, running_s() + PATIENCE_S)
        for sock in (one, other):
            with pytest.raises(BlockingIOError):
                sock.recv(1)
    received, process = sorted(results, key=len)
    assert process == this_process()
    assert received == FIELDS._replace(nonce=received.nonce)
    assert len(set(received.nonce)) > 10


def test_format_of_the_accepting_side():
    with accepting() as peer:
        challenge = peer.receive()
        assert challenge[:5] == struct.pack(">IB", 44, 0x0B)
        magic, version, loopback_only, nonce = struct.unpack(CHALLENGE_FORMAT, challenge[5:])
        assert (magic, version, loopback_only) == (b"cobrecom", tags.PROTOCOL_VERSION, 0)
        assert len(set(nonce)) > 10
        sent = handshake(challenge[5:], KEY, rank=3, size=5, port=77)
        assert len(sent) == HANDSHAKE_BYTES
        assert sent[:13] == struct.pack(">IBII", HANDSHAKE_BYTES - 4, 0x08, 3, 5)
        peer.send(sent)
        assert (peer.result().rank, peer.result().port) == (3, 77)
        assert peer.rest() == ack(challenge[5:] + sent[5:-32])


def test_format_of_the_connecting_side():
    """The connecting side leaves the bytes after the acknowledgement in the socket."""
    with connecting() as peer:
        transcript, end = check_answer(peer), peer.dup()
        peer.send(ack(transcript) + b"more")
        assert peer.result() == this_process()
        with end:
            assert end.recv(100) == b"more"


@pytest.mark.parametrize(
    "where", [*range(5, 5 + 102, 3), *range(HANDSHAKE_BYTES - 32, HANDSHAKE_BYTES)]
)
def test_any_changed_byte_spoils_the_proof(where):
    with accepting() as peer:
        sent = bytearray(handshake(peer.receive()[5:], KEY))
        sent[where] ^= 0x10
        peer.send(sent)
        assert isinstance(peer.result(), AuthenticationFailed)
        assert peer.rest() == b""


@pytest.mark.parametrize("key", [b"", b"another", KEY + b"x", KEY[:-1]])
def test_other_key(key):
    with accepting() as peer:
        peer.send(handshake(peer.receive()[5:], key))
        error = peer.result()
        assert isinstance(error, AuthenticationFailed)
        assert "token" in str(error)


def test_refusal_is_proven_to_the_refused():
    with accepting("is not wanted: ü") as peer:
        challenge = peer.receive()[5:]
        sent = handshake(challenge, KEY)
        peer.send(sent)
        error = peer.result()
        assert isinstance(error, Refused)
        assert str(error) == "is not wanted: ü"
        reason, transcript = "is not wanted: ü".encode(), challenge + sent[5:-32]
        assert peer.rest() == frame(0x0C, proof(KEY, b"refusing", transcript + reason) + reason)


@pytest.mark.parametrize("key", [KEY, b"another"])
def test_refusal_is_believed_if_it_is_proven(key):
    with connecting() as peer:
        transcript = check_answer(peer)
        peer.send(frame(0x0C, proof(key, b"refusing", transcript + b"no") + b"no"))
        error = peer.result()
        assert isinstance(error, Refused if key == KEY else AuthenticationFailed)
        assert str(error) == "no" if key == KEY else "token" in str(error)


OTHER_SIZE = struct.pack(">I", 6) + this_process()


@pytest.mark.parametrize(
    "answer",
    [
        lambda transcript: frame(0x09, ADMITTED + bytes(32)),
        lambda transcript: ack(transcript, b"connecting"),  # the connecting side's own proof
        lambda transcript: frame(
            0x09, OTHER_SIZE + proof(KEY, b"accepting", transcript + ADMITTED)
        ),
        lambda transcript: frame(0x09, bytes(500)),
        lambda transcript: frame(0x0C, bytes(20)),
        lambda transcript: struct.pack(">IB", 2**32 - 1, 0x0C) + bytes(100),
        lambda transcript: struct.pack(">IB", 2**32 - 1, 0x09) + bytes(100),
        lambda transcript: bytes(100),
    ],
)
def test_answers_that_prove_nothing(answer):
    with connecting() as peer:
        peer.send(answer(check_answer(peer)))
        assert isinstance(peer.result(), AuthenticationFailed)


def test_answer_to_another_handshake():
    with connecting() as first, connecting() as second:
        old = check_answer(first)
        check_answer(second)
        second.send(ack(old))
        assert isinstance(second.result(), AuthenticationFailed)


@pytest.mark.parametrize(
    "first_bytes",
    [
        frame(0x0B, challenge_of(magic=b"somebody")),
        frame(0x0B, challenge_of() + b"more"),
        frame(0x08, challenge_of()),
        struct.pack(">IB", 2**32 - 1, 0x0B) + bytes(100),
        b"HTTP/1.1 400 Bad Request\r\n",
        bytes(50),
    ],
)
def test_connecting_side_sends_nothing_to_another_program(first_bytes):
    with connecting(first_bytes) as peer:
        assert "is not a rank of cobre_comm" in str(peer.result())
        with contextlib.suppress(ConnectionResetError):
            assert peer.rest() == b""


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">IB", 2**32 - 1, 0x08) + bytes(100),
        struct.pack(">IB", HANDSHAKE_BYTES - 4, 0x09) + bytes(HANDSHAKE_BYTES - 5),
        struct.pack(">IBIIH", 134, 0x08, 1, 2, tags.PROTOCOL_VERSION) + bytes(124),
        struct.pack(">IB", 0, 0x08) + bytes(100),
        struct.pack(">IB", 1, 0x08) + bytes(100),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        bytes(200),
    ],
)
def test_accepting_side_reads_no_further_than_it_must(data):
    with accepting() as peer:
        peer.receive()
        peer.send(data)
        assert str(peer.result()) == "sent something that is not a handshake"


def test_each_side_names_the_version_of_the_other():
    with accepting() as peer:
        peer.receive()
        peer.send(frame(0x08, struct.pack(">IIH", 1, 2, 77) + bytes(300)))
        assert "version 77" in str(peer.result())
    with connecting(frame(0x0B, challenge_of(77))) as peer:
        check_answer(peer, challenge_of(77))
        peer.sock.close()
        error = peer.result()
        assert isinstance(error, AuthenticationFailed)
        assert "version 77" in str(error)
        assert f"speaks {tags.PROTOCOL_VERSION}" in str(error)


@pytest.mark.parametrize("count", [0, 3, 5, 20, HANDSHAKE_BYTES - 1])
def test_half_a_handshake(count):
    with accepting(limit_s=SHORT_S) as peer:
        peer.send(handshake(peer.receive()[5:], KEY)[:count])
        assert isinstance(peer.result(), TimeoutError)
    with accepting() as peer:
        peer.send(handshake(peer.receive()[5:], KEY)[:count])
        peer.sock.close()
        assert isinstance(peer.result(), ConnectionError)


def test_the_limit_ends_with_the_own_handshake():
    """The limit holds until a rank has sent its proof, because a busy rank 0 may answer later."""
    with connecting(limit_s=SHORT_S) as peer:
        transcript = check_answer(peer)
        assert not peer.ends_within(3 * SHORT_S)
        peer.send(ack(transcript))
        assert peer.result() == this_process()
