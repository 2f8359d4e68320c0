"""The regions that this process has mapped: a table that all its communicators read.

The same bytes have another address on each rank, but one *location* on all ranks: the number of a
region, and an offset in the region. The number is drawn once for all ranks that map the region, and
is never used again. Python adds a region to the table when the region is mapped, and removes it
before the region is unmapped. Other threads may read the table meanwhile. So a reader believes a
row only if the row has the same number before and after the reader has read its bounds.
"""

from typing import NamedTuple

from cobre_kernels.machine.atomics import load_acquire
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.record import Record, own_rows, shared, word

# As many mappings as Linux permits. A search reads all rows that have been used, and takes 1 ns for
# each.
ROWS = 2**16
NO_REGION = 0
NOWHERE = 0  # an address that is in no region

REGION = Record(
    "Region",
    "Where this process has mapped a region; shared among its threads.",
    number=shared("number of the region, the same on all ranks; NO_REGION: the row is free"),
    begin=shared("address of the region's first byte"),
    end=shared("address behind the region's last byte"),
)

REGIONS = Record(
    "Regions",
    "The regions that this process has mapped; shared among its threads.",
    used=shared("number of rows that have been used; all other rows are free"),
    rows=own_rows(REGION, "the regions, in any order", ROWS),
)

REGION_STATE = Record(
    "RegionState",
    "What compiled code knows about a region; in the memory of this process.",
    identity=word("number of the region among those of its communicator; the same on all ranks"),
    closed=shared("1: the region is closed; other threads of this process read this word"),
)

LOCATION = Record(
    "Location",
    "Where a rank's output and its data to send lie, in words that mean the same on all ranks.",
    region=word("number of the output's region, or NO_REGION"),
    offset=word("offset of the output in that region"),
    send_region=word("number of the region that holds the data to send, or NO_REGION"),
    send_offset=word("offset of the data to send in that region"),
)


class OutputMemory(NamedTuple):
    """The memory in which a rank receives (its output), and the memory from which it sends.

    ``size_bytes`` is how far ranks write into their outputs; it is the same on all ranks.
    """

    address: int
    size_bytes: int
    send: int
    send_bytes: int


@routine
def is_closed(state):
    """Tell whether this process has closed a region.

    The load pairs with the store of the thread that closes the region.
    """
    return load_acquire(state.closed) != 0


@routine
def may_be_shared(comm, address, size_bytes):
    """Tell whether other ranks may see this memory; without regions the answer costs one load."""
    return locate(comm, address, size_bytes)[0] != NO_REGION


@routine
def locate(comm, address, size_bytes):
    """Return (number of a region, offset) for some memory; (NO_REGION, 0) if it is in no region."""
    regions = comm.regions
    # Acquires: pair with the stores of a thread that has listed a region.
    for row in range(load_acquire(regions.used)):
        region = regions.rows[row]
        number, begin = load_acquire(region.number), load_acquire(region.begin)
        inside = begin <= address and address + size_bytes <= load_acquire(region.end)
        if inside and number != NO_REGION and load_acquire(region.number) == number:
            return number, address - begin
    return NO_REGION, 0


@routine
def note_location(comm, output):
    """Note where this rank's output is, and where the data are that it sends."""
    location = comm.location
    location.region, location.offset = locate(comm, output.address, output.size_bytes)
    location.send_region, location.send_offset = locate(comm, output.send, output.send_bytes)
