"""The tags of all frames: a tag names the kind of the payload that follows.

A frame has a u32 length of the bytes that follow, a u8 tag, and a payload. Integers are big-endian.
A tag keeps its number in every version, so that two versions can still read each other's HANDSHAKE
and CHALLENGE, and find out that they differ. PROTOCOL_VERSION is the version of HANDSHAKE and
CHALLENGE alone. Later frames need no version: a HANDSHAKE contains the hash of the sources, and
ranks of the same sources have the same frames. ``backends/tcp/rendezvous/protocol.py`` describes
how the ranks of a job meet, and ``docs/design/tcp-protocol.md`` what leaders send each other
afterwards.
"""

PROTOCOL_VERSION = 12

# Tags on data links.
EXCHANGE = 0x01  # the header of an exchange, and an eager payload
STRIPE = 0x02  # the header of an alltoallv, and the receiver's part
BLOCK = 0x03  # bytes of an allgatherv or a broadcast, around the ring
PARTIAL = 0x04  # a chunk of a partial fold, along the chain
RESULT = 0x05  # a chunk of a result

# Tags of the rendezvous.
HANDSHAKE = 0x08
ACK = 0x09
CHALLENGE = 0x0B  # the accepting end's first frame: magic, version, whether all is loopback, nonce
REFUSED = 0x0C  # the reason why a peer with a valid proof is not accepted
PEERS = 0x0D  # where the leaders listen
PART = 0x0E  # the part of a worker, in an exchange of all ranks
PARTS = 0x0F  # the parts of all ranks
JOB = 0x13  # what all workers must know about the job

# Tags between survivors (backends/tcp/council.py).
ANSWER = 0x14  # to a roll call: a row, or the roll that the survivor holds
ROLL = 0x15  # a roll that the survivor is to hold
HELD = 0x16
DECIDED = 0x17

# Tags on control links, while the job runs. 0x0A, and 0x10 to 0x12, belonged to earlier versions.
FIRST_CONTROL = 0x20  # the kind of the message is added to it (nodes/messages.py)

LENGTH_BYTES = 4
TAG_BYTES = 1
PREFIX_BYTES = LENGTH_BYTES + TAG_BYTES

# Purposes of a link, which its handshake contains.
CONTROL = 0  # between rank 0 and every other rank, and between every two leaders
DATA = 1  # between every two leaders
COUNCIL = 2  # between a survivor and the chair of its council
