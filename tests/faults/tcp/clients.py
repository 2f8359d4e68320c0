"""Connections to the port of a job; the wire format stands here a second time, apart from ours."""

import contextlib
import hashlib
import hmac
import os
import pathlib
import socket
import struct
import sys
import threading
import time

from cobre_kernels.shm.control import PLACE_BYTES
from cobre_kernels.tcp.tags import PROTOCOL_VERSION

from cobre_comm.sources import own_sources

CHALLENGE, HANDSHAKE, ACK, REFUSED = 0x0B, 0x08, 0x09, 0x0C
MAGIC = b"cobrecom"
CHALLENGE_FORMAT = ">8sHB32s"
FIELDS_FORMAT = f">IIHBBIH52sQ{PLACE_BYTES}s32s"
FIELDS = {
    "rank": 1,
    "size": 3,
    "version": PROTOCOL_VERSION,
    "byte_order": int(sys.byteorder == "big"),
    "purpose": 0,
    "target": 0,
    "port": 9,
    "process": bytes(52),
    "sources": own_sources().hash,
    "place": own_sources().place,
    "nonce": bytes(32),
}
PAUSE_S = 0.001  # between visits, because a visit ends at once if no process listens
HANDSHAKE_BYTES = 5 + struct.calcsize(FIELDS_FORMAT) + 32


def frame(tag, payload):
    return struct.pack(">IB", 1 + len(payload), tag) + payload


def proof(key, role, transcript):
    return hmac.new(key, role + b"\0" + transcript, hashlib.sha256).digest()


def handshake(challenge, key, **changes):
    """Return the frame that answers a challenge."""
    fields = struct.pack(FIELDS_FORMAT, *{**FIELDS, "nonce": os.urandom(32), **changes}.values())
    return frame(HANDSHAKE, fields + proof(key, b"connecting", challenge + fields))


class Client:
    """A connection that sends the bytes of a test."""

    def __init__(self, port, host="127.0.0.1", limit_s=20.0, patient=True):
        deadline = time.monotonic() + limit_s
        while True:
            try:
                self.sock = socket.create_connection((host, port), limit_s)
                break
            except ConnectionRefusedError:  # a rank 0 that was just started does not yet listen
                if not patient or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def frame(self):
        length, tag = struct.unpack(">IB", self.receive(5))
        return tag, self.receive(length - 1)

    def challenge(self):
        tag, payload = self.frame()
        assert tag == CHALLENGE
        assert len(payload) == struct.calcsize(CHALLENGE_FORMAT)
        return payload

    def introduce(self, token, **changes):
        """Shake hands; return tag and payload of the answer."""
        self.send(handshake(self.challenge(), token.encode(), **changes))
        return self.frame()

    def closed(self):
        """Wait until the other side closes the connection; return how many bytes it still sent."""
        count = 0
        with contextlib.suppress(ConnectionResetError):
            while data := self.sock.recv(4096):
                count += len(data)
        return count


class Visitor:
    """Connects to a job over and over, in a thread; ``behave`` is called with each connection."""

    def __init__(self, port, behave, limit_s=20.0):
        self._port, self._behave, self._limit_s = port, behave, limit_s
        self._over, self.visited = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.wait(PAUSE_S):
            # The job drops most connections while the visitor still sends.
            with (
                contextlib.suppress(OSError, EOFError, AssertionError),
                Client(self._port, limit_s=self._limit_s, patient=False) as client,
            ):
                self.visited.set()
                self._behave(client, self._over)


def refusal(answer):
    """Return the reason in the answer to a handshake."""
    tag, payload = answer
    assert tag == REFUSED, answer
    return payload[32:].decode()


def listening():
    """Return, by its name in /proc, address and port of each listening socket, as digits."""
    found = {}
    for path in map(pathlib.Path, ("/proc/net/tcp", "/proc/net/tcp6")):
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            _, local, _, state, *rest = line.split()
            if state == "0A":
                found[f"socket:[{rest[5]}]"] = local.split(":")
    return found


def wait_for_port(port):
    """Wait until a process listens at a port."""
    Client(port).sock.close()
