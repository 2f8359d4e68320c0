"""Throws connections at a port: noise, mutated handshakes, parts of valid handshakes.

No job may accept such a connection: a handshake that has a valid proof has a wrong field, and a
handshake that has only right fields has no valid proof.
"""

import random
import struct

from cobre_kernels.tcp.tags import PROTOCOL_VERSION

from tests.faults.tcp.clients import frame, handshake

MOST_HELD = 40  # connections that stay open and send nothing more


class Fuzzer:
    """Behaves wrongly, and in another way at each visit."""

    def __init__(self, seed, token, size):
        self._token, self._size = token.encode(), size
        self._random = random.Random(seed)
        self._held = []
        self._kinds = [
            self._noise, self._noise_after_challenge, self._huge_claim, self._nothing,
            self._half_open, self._bit_flip, self._cut, self._longer, self._other_key,
            self._wrong_field, self._twice,
        ]  # fmt: skip

    def behave(self, client, over):
        self._random.choice(self._kinds)(client)

    def _bytes(self, most):
        return self._random.randbytes(self._random.randrange(1, most))

    def _handshake(self, client, key=None, **changes):
        """Return a handshake that would be accepted if it had no changes and no other key."""
        rank = self._random.randrange(1, self._size)
        fields = {"rank": rank, "size": self._size, **changes}
        return bytearray(handshake(client.challenge(), key or self._token, **fields))

    def _noise(self, client):
        client.send(self._bytes(3000))

    def _noise_after_challenge(self, client):
        client.challenge()
        client.send(self._bytes(300))
        client.closed()

    def _huge_claim(self, client):
        client.send(struct.pack(">IB", self._random.randrange(2**20, 2**32), 8) + self._bytes(2000))

    def _nothing(self, client):
        pass

    def _half_open(self, client):
        if len(self._held) == MOST_HELD:
            self._held.pop(0).close()
        self._held.append(client.sock.dup())
        client.send(self._handshake(client, b"x")[: self._random.randrange(20)])

    def _bit_flip(self, client):
        data = self._handshake(client)
        data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        client.send(data)
        self._answer(client)

    def _cut(self, client):
        data = self._handshake(client)
        client.send(data[: self._random.randrange(len(data))])

    def _longer(self, client):
        data = self._handshake(client, b"x")
        length = len(data) - 4 + self._random.randrange(1, 400)
        client.send(struct.pack(">I", length) + data[4:] + self._bytes(400))
        self._answer(client)

    def _other_key(self, client):
        client.send(self._handshake(client, self._bytes(40)))
        self._answer(client)

    def _wrong_field(self, client):
        order = struct.pack(">I", self._random.getrandbits(32))
        changes = self._random.choice(
            [
                {"rank": self._size + order[0]},
                {"size": self._size + 1 + order[0]},
                {"version": PROTOCOL_VERSION + 1 + order[0]},
                {"sources": order[0]},
                {"byte_order": 2 + order[0] % 200},
                {"target": 1 + order[0]},
                {"purpose": 4 + order[0] % 200},
            ]
        )
        client.send(self._handshake(client, **changes))
        self._answer(client)

    def _twice(self, client):
        data = self._handshake(client, b"x")
        client.send(data + data + frame(0x0D, self._bytes(100)))
        self._answer(client)

    def _answer(self, client):
        tag, _ = client.frame()
        assert tag == 0x0C, "a false handshake was accepted"
