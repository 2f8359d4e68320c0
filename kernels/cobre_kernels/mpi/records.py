"""The records for MPI: the library's handles of a communicator, and its control messages."""

from cobre_kernels.collective.seeing.journal import RAISED_ROWS, RAISED_WORDS
from cobre_kernels.machine.record import WORD_BYTES, Record, memory, pointer, table, word
from cobre_kernels.nodes.messages import KINDS

MPI_MESSAGE = Record(
    "MpiMessage",
    "The start of a control message between leaders (nodes/messages.py); its words follow.",
    kind=word("QUERY, ANSWER, RAISED, REPORT or GOODBYE"),
    sender=word("the rank that sends the message"),
    number=word("the number in the message"),
)

MPI = Record(
    "Mpi",
    "What a communicator over MPI has beside its Nodes record, if it has several nodes.",
    # The library.
    handle_bytes=word("bytes of a handle of this MPI: 4 or 8"),
    functions=table("addresses of MPI's functions, in the order of mpi/calls.py; 0: not there"),
    world=word("handle of the communicator of all ranks"),
    leaders=word("handle of the communicator of the leaders; 0 on a follower"),
    byte=word("handle of MPI_BYTE"),
    in_place=word("value of MPI_IN_PLACE"),
    any_source=word("value of MPI_ANY_SOURCE"),
    flag=memory(8, "a C int that MPI writes"),
    request=memory(8, "handle of the collective or of the receive that is under way"),
    sending=memory(8, "handle of a send that is under way beside a receive"),
    matched=memory(8, "handle of a message that MPI has matched"),
    status=word("address of an MPI_Status, which MPI writes and nobody reads"),
    counts=word("address of four arrays of C ints or 64-bit counts, one for each node"),
    # Control messages.
    message_bytes=word("bytes of the longest control message"),
    outbox=word("address of messages to send: one of each kind, and one for each exception"),
    inbox=pointer("MpiMessage", "the message that this rank receives"),
    sends=word("address of handles: for each node, that of the last send to the node"),
)
OUTBOX_MESSAGES = len(KINDS) + RAISED_ROWS


def message_bytes(size):
    """Return the bytes of the longest control message in a communicator of ``size`` ranks."""
    return MPI_MESSAGE.size_bytes + WORD_BYTES * max(size, RAISED_WORDS)
