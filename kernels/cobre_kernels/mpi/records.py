"""What a communicator keeps of the MPI library, and of the exchanges between leaders over it."""

from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.machine.record import Record, memory, own_rows, pointer, rows, table, word

REASON = Record("Reason", "One word of a failure report.", reason=word("why a rank is lost"))

MESSAGE = Record(
    "Message",
    "A control message between leaders; a liveness query or answer ends after its sender.",
    kind=word("REPORT, QUERY or ANSWER"),
    sender=word("its rank"),
    completed=word("how many exchanges the sender had completed"),
    reasons=own_rows(REASON, "one for each rank: why it takes no further part"),
)

RAISED_MESSAGE = Record(
    "RaisedMessage",
    "A control message: by which exception a rank has ended.",
    kind=word("RAISED"),
    sender=word("its rank"),
    rank=word("the rank that has ended"),
    words=memory(RAISED_BYTES, "type and first line of the text"),
)

MPI = Record(
    "Mpi",
    "What one communicator over several nodes knows of MPI, beside its Nodes record.",
    # The library.
    handle_bytes=word("width of a handle: 4 or 8"),
    world=word("handle of the communicator of all ranks"),
    leaders=word("handle of the communicator of the leaders; 0 on a follower"),
    byte=word("handle of MPI_BYTE"),
    in_place=word("MPI_IN_PLACE"),
    any_source=word("MPI_ANY_SOURCE"),
    flag=memory(8, "a C int that MPI writes"),
    request=memory(8, "handle of the exchange under way"),
    matched=memory(8, "handle of a message that MPI has matched"),
    status=word("address of an MPI_Status, which is never read"),
    counts=word("address of four arrays of C ints or 64-bit counts, one for each node"),
    # Exchanges.
    begun=word("exchanges that this leader has begun"),
    completed=word("exchanges that it has completed"),
    # Control messages.
    reports=word("failure reports and goodbyes that have come"),
    reporter=word("rank that sent the last one"),
    reported=word("the fewest exchanges that a reporter had completed"),
    reasons=table("why each rank takes no further part, by reports"),
    answered=table("1 for each node whose leader has answered"),
    report_out=pointer("Message", "the report that this rank sends"),
    raised_out=rows("RaisedMessage", "what ranks have raised, as the journal of this rank has it"),
    query_out=pointer("Message", "the query that this rank sends"),
    answer_out=pointer("Message", "the answer that this rank sends"),
    message_in=pointer("Message", "the message that this rank receives"),
    sends=word("address of the handle of the last send to each node"),
)


def message_bytes(size):
    """Return the bytes of the longest control message in a communicator of so many ranks."""
    return max(MESSAGE.size_bytes + size * REASON.size_bytes, RAISED_MESSAGE.size_bytes)
