"""A frame: u32 length of the bytes that follow, u8 tag, payload. Integers are big-endian.

Tags up to 0x0A are those of the documents this protocol comes from; the others are ours.
"""

PROTOCOL_VERSION = 5

# Collectives, on data links.
ALLGATHERV_SEND = 0x01
ALLGATHERV_RECV = 0x02
ALLREDUCE_SEND = 0x03
ALLREDUCE_RECV = 0x04
BROADCAST = 0x05
BARRIER_READY = 0x06
BARRIER_GO = 0x07
GATHERV_SEND = 0x12
GATHERV_RECV = 0x13

# Start-up.
HANDSHAKE = 0x08
ACK = 0x09
CHALLENGE = 0x0B  # the accepting side's first word: magic, version, nonce
REFUSED = 0x0C  # why a proven peer is not accepted
PEERS = 0x0D  # where every rank listens
PART = 0x0E  # what a worker gives in an exchange of all ranks
PARTS = 0x0F  # what all ranks have given

# On control links, while the job runs.
SHUTDOWN = 0x0A  # goodbye: the sender closes its communicator
WAITING = 0x10  # liveness query, and the answer to one
FAILURE = 0x11  # failure report

LENGTH_BYTES = 4
TAG_BYTES = 1
PREFIX_BYTES = LENGTH_BYTES + TAG_BYTES

# Purposes of a link, told in its handshake.
CONTROL = 0  # one for each pair of ranks: control messages
STAR = 1  # between rank 0 and every other: headers and small payloads
RING_DOWN = 2  # bulk data from the accepting rank to the connecting one
RING_UP = 3  # bulk data from the connecting rank to the accepting one
