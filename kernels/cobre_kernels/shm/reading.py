"""A large private array is read where it is, by process_vm_readv(2): one copy instead of two.

The sender shows the place of its array in the first step, and each reader copies the array. In a
last step all ranks show whether they could read, so no sender returns before its array is read. Not
every system permits process_vm_readv (Yama, seccomp, containers), and a system may forbid it at any
time. If one rank could not read, all ranks learn that in the last step, begin anew through slots,
and do not try to read again on this communicator. So the first large collective is the test.
"""

from cobre_kernels.collective.calls import called
from cobre_kernels.collective.reading import READING, SENDER
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import WORD_BYTES, peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.shm.step import next_generation, synchronise
from cobre_kernels.shm.wait import cell_of

READ_BYTES = 2 * 2**20  # the call looks up every page, so for less, slots are as fast (copies.md)
MOST_BYTES = 2**30  # of a call, which moves less than 2 GiB
SENDER_BYTES = SENDER.size_bytes
TOKEN = READING.offsets["token"]


@routine
def may_read(comm, size_bytes):
    """Tell whether so many private bytes are read where they are; the same on all ranks."""
    return libc.CAN_READ_PROCESSES and size_bytes >= READ_BYTES and not comm.node.reading.is_refused


@routine
def show_array(comm, generation, address):
    """Put the place of this rank's array into its cell of the step that it enters next."""
    reading = comm.node.reading
    sender = reading.sender
    sender.pid, sender.array = reading.pid, address
    sender.token, sender.token_address = reading.token, reading.address + TOKEN
    move(cell_of(comm, comm.node.rank, generation).payload, sender.address, SENDER_BYTES)


@routine
def read_array(comm, rank, generation, target, size_bytes):
    """Copy the array that a rank shows in this step; return 1, or 0 if it cannot be read."""
    reading = comm.node.reading
    sender, here, there = reading.sender, reading.here, reading.there
    move(sender.address, cell_of(comm, rank, generation).payload, SENDER_BYTES)
    here[0].begin, here[0].count = reading.found, WORD_BYTES
    there[0].begin, there[0].count = sender.token_address, WORD_BYTES
    poke(reading.found, 0)
    done = 0
    while done < size_bytes:
        count = min(size_bytes - done, MOST_BYTES)
        here[1].begin, here[1].count = target + done, count
        there[1].begin, there[1].count = sender.array + done, count
        got = libc.read_process(sender.pid, here[0].address, there[0].address, 2)
        if got != WORD_BYTES + count or peek(reading.found) != sender.token:
            return 0
        done += count
    return 1


@routine
def end_reading(comm, could):
    """Go through the last step; return USE_SLOTS if a rank could not read."""
    generation = next_generation(comm)
    poke(cell_of(comm, comm.node.rank, generation).payload, could)
    outcome = synchronise(comm, called(comm))
    for rank in range(comm.node.size if outcome == OK else 0):
        if peek(cell_of(comm, rank, generation).payload) == 0:
            comm.node.reading.is_refused = 1
            outcome = USE_SLOTS
    return outcome
