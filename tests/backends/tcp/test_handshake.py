"""The handshake byte by byte, and the small parts of the rendezvous."""

import contextlib
import socket
import struct
import time

import pytest
from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.event_loop import Loop
from cobre_comm.backends.tcp.rendezvous.handshake import (
    OWN_BYTE_ORDER,
    AuthenticationFailed,
    Handshake,
    Refused,
    handshake_as_acceptor,
    handshake_as_connector,
)
from tests.backends.tcp.one_task import LIMIT_S, Talk
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
TOLD = Handshake(
    rank=2,
    size=5,
    version=1,
    byte_order=OWN_BYTE_ORDER,
    purpose=1,
    target=0,
    port=4711,
    machine=bytes(range(32)),
)


def accepting(refusal=None, key=KEY):
    return Talk(
        lambda sock, until: handshake_as_acceptor(sock, lambda _: key, lambda _: refusal, until)
    )


def connecting(key=KEY):
    return Talk(lambda sock, until: handshake_as_connector(sock, lambda _: TOLD, key, until))


def test_both_sides_agree():
    results = []
    one, other = socket.socketpair()

    def accept():
        results.append(
            (yield from handshake_as_acceptor(one, lambda purpose: KEY, lambda _: None, 1e18))
        )

    def connect():
        results.append((yield from handshake_as_connector(other, lambda _: TOLD, KEY, 1e18)))

    with one, other, contextlib.closing(Loop()) as loop:
        for sock in (one, other):
            sock.setblocking(False)
        loop.start(accept())
        loop.start(connect())
        assert loop.run(lambda: len(results) == 2, time.monotonic() + 2.0)
        for sock in (one, other):
            with pytest.raises(BlockingIOError):
                sock.recv(1)
    handshake = next(result for result in results if result is not None)
    assert handshake == TOLD._replace(nonce=handshake.nonce)
    assert len(set(handshake.nonce)) > 10


def test_format_of_the_accepting_side():
    with accepting() as talk:
        challenge = talk.other.recv(1000)
        assert challenge[:5] == struct.pack(">IB", 44, 0x0B)
        magic, version, loopback_only, nonce = struct.unpack(CHALLENGE_FORMAT, challenge[5:])
        assert (magic, version, loopback_only) == (b"cobrecom", tags.PROTOCOL_VERSION, 0)
        assert len(set(nonce)) > 10
        told = handshake(challenge[5:], KEY, rank=3, size=5, port=77)
        assert len(told) == HANDSHAKE_BYTES
        assert told[:5] == struct.pack(">IB", 115, 0x08)
        assert told[5:13] == struct.pack(">II", 3, 5)
        talk.other.send(told)
        assert (talk.end().rank, talk.end().port) == (3, 77)
        transcript = challenge[5:] + told[5:-32]
        size = struct.pack(">I", 5)
        assert talk.heard() == frame(0x09, size + proof(KEY, b"accepting", transcript + size))


def challenge_of(version=tags.PROTOCOL_VERSION, magic=MAGIC):
    return struct.pack(CHALLENGE_FORMAT, magic, version, 1, bytes(range(32)))


def answer(talk, challenge):
    """Challenge a connecting side; return the transcript."""
    talk.other.send(frame(0x0B, challenge))
    talk._loop.run(lambda: False, time.monotonic() + 0.02)
    told = talk.other.recv(1000)
    assert len(told) == HANDSHAKE_BYTES
    fields = struct.unpack(FIELDS_FORMAT, told[5:-32])
    assert fields[:-1] == TOLD[:-1]
    transcript = challenge + told[5:-32]
    assert told[-32:] == proof(KEY, b"connecting", transcript)
    return transcript


def test_format_of_the_connecting_side():
    with connecting() as talk:
        transcript = answer(talk, challenge_of())
        size = struct.pack(">I", 5)
        talk.other.send(frame(0x09, size + proof(KEY, b"accepting", transcript + size)) + b"more")
        assert talk.end() is None


def test_what_follows_is_not_consumed():
    with connecting() as talk:
        transcript = answer(talk, challenge_of())
        ours = talk._ours.dup()
        size = struct.pack(">I", 5)
        talk.other.send(frame(0x09, size + proof(KEY, b"accepting", transcript + size)) + b"more")
        talk.end()
        with ours:
            assert ours.recv(100) == b"more"


@pytest.mark.parametrize(
    "where", [*range(5, 5 + 82, 3), *range(HANDSHAKE_BYTES - 32, HANDSHAKE_BYTES)]
)
def test_any_changed_byte_spoils_the_proof(where):
    with accepting() as talk:
        told = bytearray(handshake(talk.other.recv(1000)[5:], KEY))
        told[where] ^= 0x10
        talk.other.send(told)
        assert isinstance(talk.end(), AuthenticationFailed)
        assert talk.heard() == b""


@pytest.mark.parametrize("key", [b"", b"another", KEY + b"x", KEY[:-1]])
def test_other_key(key):
    with accepting() as talk:
        talk.other.send(handshake(talk.other.recv(1000)[5:], key))
        error = talk.end()
        assert isinstance(error, AuthenticationFailed)
        assert "token" in str(error)


def test_refusal_is_proven_to_the_refused():
    with accepting("is not wanted: ü") as talk:
        challenge = talk.other.recv(1000)[5:]
        told = handshake(challenge, KEY)
        talk.other.send(told)
        error = talk.end()
        assert isinstance(error, Refused)
        assert str(error) == "is not wanted: ü"
        reason = "is not wanted: ü".encode()
        transcript = challenge + told[5:-32]
        assert talk.heard() == frame(0x0C, proof(KEY, b"refusing", transcript + reason) + reason)


@pytest.mark.parametrize("key", [KEY, b"another"])
def test_refusal_is_believed_if_it_is_proven(key):
    with connecting() as talk:
        transcript = answer(talk, challenge_of())
        talk.other.send(frame(0x0C, proof(key, b"refusing", transcript + b"no") + b"no"))
        error = talk.end()
        assert isinstance(error, Refused if key == KEY else AuthenticationFailed)
        assert str(error) == "no" if key == KEY else "token" in str(error)


@pytest.mark.parametrize(
    "answer_frame",
    [
        lambda transcript: frame(0x09, struct.pack(">I", 5) + bytes(32)),
        # The connecting side's own words, sent back.
        lambda transcript: frame(
            0x09, struct.pack(">I", 5) + proof(KEY, b"connecting", transcript)
        ),
        lambda transcript: frame(
            0x09, struct.pack(">I", 6) + proof(KEY, b"accepting", transcript + bytes(4))
        ),
        lambda transcript: frame(0x09, bytes(500)),
        lambda transcript: frame(0x0C, bytes(20)),
        lambda transcript: struct.pack(">IB", 2**32 - 1, 0x0C) + bytes(100),
        lambda transcript: struct.pack(">IB", 2**32 - 1, 0x09) + bytes(100),
        lambda transcript: bytes(100),
    ],
)
def test_answers_that_prove_nothing(answer_frame):
    with connecting() as talk:
        talk.other.send(answer_frame(answer(talk, challenge_of())))
        assert isinstance(talk.end(), AuthenticationFailed)


def test_answer_to_another_handshake():
    with connecting() as first, connecting() as second:
        old = answer(first, challenge_of())
        answer(second, challenge_of())
        size = struct.pack(">I", 5)
        second.other.send(frame(0x09, size + proof(KEY, b"accepting", old + size)))
        assert isinstance(second.end(), AuthenticationFailed)


@pytest.mark.parametrize(
    "first_words",
    [
        frame(0x0B, challenge_of(magic=b"somebody")),
        frame(0x0B, challenge_of() + b"more"),
        frame(0x08, challenge_of()),
        struct.pack(">IB", 2**32 - 1, 0x0B) + bytes(100),
        b"HTTP/1.1 400 Bad Request\r\n",
        bytes(50),
    ],
)
def test_connecting_side_says_nothing_to_strangers(first_words):
    with connecting() as talk:
        talk.other.send(first_words)
        assert "is not a rank of cobre_comm" in str(talk.end())
        with contextlib.suppress(ConnectionResetError):
            assert talk.heard() == b""


@pytest.mark.parametrize(
    "words",
    [
        struct.pack(">IB", 2**32 - 1, 0x08) + bytes(100),
        struct.pack(">IB", 115, 0x09) + bytes(114),
        struct.pack(">IB", 114, 0x08) + struct.pack(">IIH", 1, 2, 1) + bytes(104),
        struct.pack(">IB", 0, 0x08) + bytes(100),
        struct.pack(">IB", 1, 0x08) + bytes(100),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        bytes(200),
    ],
)
def test_accepting_side_reads_no_further_than_it_must(words):
    with accepting() as talk:
        talk.other.recv(1000)
        talk.other.send(words)
        assert str(talk.end()) == "sent something that is not a handshake"


def test_other_versions_can_be_told():
    with accepting() as talk:
        talk.other.recv(1000)
        talk.other.send(frame(0x08, struct.pack(">IIH", 1, 2, 9) + bytes(300)))
        assert "version 9" in str(talk.end())
    with connecting() as talk:
        answer(talk, challenge_of(9))
        talk.other.close()
        error = talk.end()
        assert isinstance(error, AuthenticationFailed)
        assert "version 9" in str(error)
        assert f"speaks {tags.PROTOCOL_VERSION}" in str(error)


@pytest.mark.parametrize("count", [0, 3, 5, 20, HANDSHAKE_BYTES - 1])
def test_half_a_handshake(count):
    with accepting() as talk:
        talk.other.send(handshake(talk.other.recv(1000)[5:], KEY)[:count])
        assert isinstance(talk.end(), TimeoutError)
    with accepting() as talk:
        talk.other.send(handshake(talk.other.recv(1000)[5:], KEY)[:count])
        talk.other.close()
        assert isinstance(talk.end(), ConnectionError)


def test_who_has_introduced_itself_waits_for_the_answer():
    with connecting() as talk:
        transcript = answer(talk, challenge_of())
        talk._loop.run(lambda: False, time.monotonic() + 2 * LIMIT_S)
        assert talk.result is None
        size = struct.pack(">I", 5)
        talk.other.send(frame(0x09, size + proof(KEY, b"accepting", transcript + size)))
        assert talk.end() is None
