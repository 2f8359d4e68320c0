"""Connections to the port of a job; the wire format is written here again, apart from our code."""

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
PAUSE_S = 0.001  # between visits, because a visit ends immediately if no process listens
HANDSHAKE_BYTES = 5 + struct.calcsize(FIELDS_FORMAT) + 32


def frame(tag, payload):
    return struct.pack(">IB", 1 + len(payload), tag) + payload


def proof(key, role, transcript):
    return hmac.new(key, role + b"\0" + transcript, hashlib.sha256).digest()


def handshake(challenge, key, **changes):
    """Return the frame that answers a challenge, with a few fields changed."""
    fields = struct.pack(FIELDS_FORMAT, *{**FIELDS, "nonce": os.urandom(32), **changes}.values())
    return frame(HANDSHAKE, fields + proof(key, b"connecting", challenge + fields))


class Client:
    """A connection over which a test sends any bytes."""

    def __init__(self, port, host="127.0.0.1", limit_s=20.0, patient=True):
        deadline = time.monotonic() + limit_s
        while True:
            try:
                self.sock = socket.create_connection((host, port), limit_s)
                break
            # a rank 0 that has just been started does not listen yet
            except ConnectionRefusedError:
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
        """Shake hands; return the tag and the payload of the answer."""
        self.send(handshake(self.challenge(), token.encode(), **changes))
        return self.frame()

    def closed(self):
        """Wait until the other side closes the connection; return how many bytes it sent before."""
        count = 0
        with contextlib.suppress(ConnectionResetError):
            while data := self.sock.recv(4096):
                count += len(data)
        return count


class Visitor:
    """Connects to a job again and again, in a thread; calls ``behave`` with each connection."""

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
            # The job closes most connections while the visitor still sends.
            with (
                contextlib.suppress(OSError, EOFError, AssertionError),
                Client(self._port, limit_s=self._limit_s, patient=False) as client,
            ):
                self.visited.set()
                self._behave(client, self._over)


def refusal(answer):
    """Return the reason that the answer to a handshake gives."""
    tag, payload = answer
    assert tag == REFUSED, answer
    return payload[32:].decode()


def listening():
    """Return address and port of each listening socket, as digits, by its name in /proc."""
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
