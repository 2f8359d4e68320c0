"""Records for reaching the array of another process; ``shm/reading.py`` has the routines.

A rank that lets others reach its array also shows a token, and the address of the token. Another
rank compares the token with the word that it finds at this address, because in another PID
namespace the same process id may be that of another process.
"""

from cobre_kernels.machine.record import Record, memory, own_rows, part, word

VECTOR = Record(
    "Vector", "A struct iovec.", begin=word("address of the bytes"), count=word("number of bytes")
)

SHOWN = Record(
    "Shown",
    "What a rank shows the others of its node in a step of a large call.",
    pid=word("the rank's process id in its own PID namespace"),
    array=word("address of the rank's array"),
    token=word("a number that no other process has at the address of the token"),
    token_address=word("address of the token in the rank's process"),
    mark=word("address to which a rank that writes to the array copies the number of the write"),
    could=word("0: the rank could not reach the array of another rank"),
    began_ns=word("when the rank entered this call"),
    ended_ns=word("when the rank had ended its last call of this operation and size"),
)

READING = Record(
    "Reading",
    "How this rank reaches arrays in the memory of others; in the memory of its own process.",
    is_refused=word("1: a rank could not reach an array, so all large data go through slots"),
    own=part(SHOWN, "what this rank shows"),
    theirs=part(SHOWN, "what a rank shows when this rank reaches its array"),
    found=memory(8, "the word found at the address of the other rank's token"),
    writes=word("how many pieces this rank has written to arrays of others"),
    number=word("number of the write under way, copied to the mark of the rank with the array"),
    mark=memory(8, "number of the last write to this rank's array that has ended"),
    here=own_rows(VECTOR, "where bytes are in this process", 2),
    there=own_rows(VECTOR, "where these bytes are in the other process", 2),
)
