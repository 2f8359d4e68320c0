"""Records for reaching the array of another process; ``shm/reading.py`` has the routines.

A rank that lets others reach its array shows a token too, and where the token is. Another rank
compares the token with the word that it finds there, because the process id alone may be that of
another process, in another PID namespace.
"""

from cobre_kernels.machine.record import Record, memory, own_rows, part, word

VECTOR = Record(
    "Vector", "A struct iovec.", begin=word("address of the bytes"), count=word("how many")
)

SHOWN = Record(
    "Shown",
    "What a rank shows the others of its node in a step of a large call.",
    pid=word("its process, by its own PID namespace"),
    array=word("address of its array"),
    token=word("a number that no other process has at this place"),
    token_address=word("where its process has the token"),
    mark=word("where a rank that writes to the array notes the number of the write"),
    could=word("0: it could not reach the array of another rank"),
    began_ns=word("when it entered this call"),
    ended_ns=word("when it had ended the call before of this kind and size"),
)

READING = Record(
    "Reading",
    "How this rank reaches arrays in the memory of others; in the memory of its own process.",
    is_refused=word("1: a rank could not reach an array, so all large data go through slots"),
    own=part(SHOWN, "of this rank"),
    theirs=part(SHOWN, "of the rank with the array that is reached"),
    found=memory(8, "the word at the place of the other rank's token"),
    writes=word("how many pieces this rank has written to arrays of others"),
    number=word("the number of the write under way, which is copied to the mark of its reader"),
    mark=memory(8, "number of the last write to this rank's array that has ended"),
    here=own_rows(VECTOR, "where bytes are in this process", 2),
    there=own_rows(VECTOR, "where they are in the other process", 2),
)
