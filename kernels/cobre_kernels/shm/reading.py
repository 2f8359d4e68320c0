"""A large private array is reached where it is, by process_vm_readv(2): one copy instead of two.

A rank shows in a step where its array is, and another rank reads the array. In a broadcast, the
root may also write a share of its bytes to the array of each reader (process_vm_writev(2)). In a
last step all ranks show whether they could reach the arrays, so no rank returns while another rank
uses its array. Not every system permits the two system calls (Yama, seccomp, containers), and a
system may forbid them at any time. If one rank could not reach an array, all ranks learn that in
the last step, begin anew through slots, and do not try again on this communicator.

A rank that fails returns early, and then its program may change its array. So after each read, the
reader looks whether that rank has failed. If it has, the reader behaves as if it could not reach
the array, and learns of the failure in the first step of the slots.

Also, the root must not write any more to the array of a reader that has failed. So the root writes
pieces, and each piece has a number that no other piece of any rank has. Before a piece, the root
shows the number, and looks whether the reader has failed. A reader that fails says so, and waits
for the end of the piece that is shown (:func:`await_writers`). Linux copies the number to the
*mark* of the reader, behind the bytes. So the reader does not wait for a root that was stopped
after it had written the bytes.
"""

from cobre_kernels.collective.calls import called
from cobre_kernels.collective.reading import READING, SHOWN
from cobre_kernels.collective.regions import NOWHERE
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import (
    WORD_BYTES,
    fence_seq_cst,
    load_acquire,
    load_seq_cst,
    peek,
    poke,
    store_release,
    store_seq_cst,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.shm.control import MEMBER, RANK_BITS
from cobre_kernels.shm.step import next_generation, synchronise
from cobre_kernels.shm.wait import cell_of

PIECE_BYTES = 2**20  # a rank that fails waits for the end of a piece, some 100 us
MOST_BYTES = 2**30  # of one system call, which moves less than 2 GiB
NAP_NS = 20_000
SHOWN_BYTES = SHOWN.size_bytes
TOKEN = SHOWN.offsets["token"]
NUMBER = READING.offsets["number"]


@routine
def show_array(comm, generation, address, could):
    """Put the place of this rank's array into its cell of the step that it enters next."""
    own = comm.node.reading.own
    own.array, own.could = address, could
    own.token_address, own.mark = own.address + TOKEN, comm.node.reading.mark
    move(cell_of(comm, comm.node.rank, generation).payload, own.address, SHOWN_BYTES)


@routine
def shown_by(comm, rank, generation):
    """Return what a rank shows in a step, in a record that the next call of shown_by overwrites."""
    theirs = comm.node.reading.theirs
    move(theirs.address, cell_of(comm, rank, generation).payload, SHOWN_BYTES)
    return theirs


@routine
def read_array(comm, rank, generation, begin, target, count):
    """Copy bytes of the array that a rank shows, from ``begin`` on; return 1, or 0 if denied.

    If the rank has failed meanwhile, its program may have changed the array, and the result is 0.
    """
    theirs, done = shown_by(comm, rank, generation), 0
    while done < count:
        length = min(count - done, MOST_BYTES)
        here, there = _vectors(comm, 1, target + done, theirs.array + begin + done, length)
        _see_token(comm)
        got = libc.read_process(theirs.pid, here, there, 2)
        if got != WORD_BYTES + length or peek(comm.node.reading.found) != theirs.token:
            return 0
        done += length
    fence_seq_cst()  # the bytes were read before the next load
    # Acquire: pairs with the store in step.announce, after which that rank's program continues.
    return 1 if load_acquire(comm.node.control.blocks[rank].condition) == MEMBER else 0


@routine
def write_array(comm, rank, generation, begin, source, count):
    """Copy to the array that a rank shows, from ``begin`` on; return 1, or 0 if denied.

    If the rank has failed, the rest is not written.
    """
    theirs, done = shown_by(comm, rank, generation), 0
    while done < count:
        length = min(count - done, PIECE_BYTES)
        if _write_piece(comm, rank, theirs.array + begin + done, source + done, length) == 0:
            return 0
        done += length
    return 1


@routine
def _write_piece(comm, rank, target, source, count):
    node, reading = comm.node, comm.node.reading
    own = node.control.blocks[node.rank]
    here, there = _see_token(comm)
    is_theirs = libc.read_process(reading.theirs.pid, here, there, 1) == WORD_BYTES
    if not is_theirs or peek(reading.found) != reading.theirs.token:
        return 0
    reading.writes += 1
    reading.number = (reading.writes << RANK_BITS | node.rank) << RANK_BITS | rank
    got = count + WORD_BYTES
    # Sequentially consistent, with the store in step.announce and the load in await_writers: either
    # this rank sees that the reader has failed, or the reader sees this write.
    store_seq_cst(own.writing, reading.number)
    if load_seq_cst(node.control.blocks[rank].condition) == MEMBER:
        here, there = _vectors(comm, 0, source, target, count)
        _vectors(comm, 1, reading.address + NUMBER, reading.theirs.mark, WORD_BYTES)
        got = libc.write_process(reading.theirs.pid, here, there, 2)
    # Release: pairs with the load in await_writers; the bytes are there once the word is 0.
    store_release(own.writing, 0)
    return 1 if got == count + WORD_BYTES else 0


@routine
def _see_token(comm):
    """Let the first vector bring the other rank's token; return the addresses of the vectors."""
    reading = comm.node.reading
    poke(reading.found, 0)
    return _vectors(comm, 0, reading.found, reading.theirs.token_address, WORD_BYTES)


@routine
def _vectors(comm, index, here, there, count):
    """Set a pair of vectors; return the addresses of the first pair."""
    own, other = comm.node.reading.here, comm.node.reading.there
    own[index].begin, own[index].count = here, count
    other[index].begin, other[index].count = there, count
    return own[0].address, other[0].address


@routine
def end_reading(comm, could):
    """Go through the last step; return USE_SLOTS if a rank could not reach an array."""
    generation = next_generation(comm)
    show_array(comm, generation, NOWHERE, could)
    outcome = synchronise(comm, called(comm))
    for rank in range(comm.node.size if outcome == OK else 0):
        if shown_by(comm, rank, generation).could == 0:
            comm.node.reading.is_refused = 1
            outcome = USE_SLOTS
    return outcome


@routine
def await_writers(comm):
    """Wait until no rank writes to this rank's array, after this rank has told that it has failed.

    The wait ends when the piece that is shown has been written, or when its writer has died. If a
    writer is stopped after it has shown a piece and before it has written the piece, this rank
    waits, because the writer could write the piece when it continues.
    """
    node, mark = comm.node, comm.node.reading.mark
    for rank in range(node.size):
        while True:
            # Sequentially consistent: see _write_piece.
            number = load_seq_cst(node.control.blocks[rank].writing)
            is_here = number != 0 and number & (1 << RANK_BITS) - 1 == node.rank
            if not is_here or load_acquire(mark) == number:
                break
            if not libc.lock_is_held(node.liveness_fd, rank, comm.scratch):
                break
            libc.sleep_ns(NAP_NS, comm.scratch)
