"""Records for reading the array of another process; ``shm/reading.py`` has the routines.

A rank that lets others read its array shows a token too, and where the token is. The reader
compares the token with the word that it finds there, because the process id alone may be that of
another process, in another PID namespace.
"""

from cobre_kernels.machine.record import Record, memory, own_rows, part, word

VECTOR = Record(
    "Vector", "A struct iovec.", begin=word("address of the bytes"), count=word("how many")
)

SENDER = Record(
    "Sender",
    "What a rank shows of an array that others read where it is.",
    pid=word("the process, by its own PID namespace"),
    array=word("address of the array"),
    token=word("a number that no other process has"),
    token_address=word("where this process has it"),
)

READING = Record(
    "Reading",
    "How this rank reads arrays in the memory of others; in the memory of its own process.",
    token=word("a number that no other process has at this place"),
    pid=word("this process"),
    is_refused=word("1: a rank could not read, so all large data go through slots"),
    sender=part(SENDER, "of the step under way"),
    found=memory(8, "the word at the place of the other rank's token"),
    here=own_rows(VECTOR, "where the token and the bytes go", 2),
    there=own_rows(VECTOR, "where they are in the other process", 2),
)
