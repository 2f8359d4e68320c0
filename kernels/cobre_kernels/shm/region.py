"""Outputs in a region: ranks that receive into the same bytes of a region need one copy in all.

A body has two routines: one for outputs that are the same bytes of a region, and one for all other
outputs. :func:`receive` decides which of the two runs. A rank that finds its output in a region
enters the first step with IN_REGION in its signature, and with the location of the output in place
of a payload. If all ranks show the same location, each rank writes its part there, and a last step
ends the collective. So a rank writes only after all ranks have entered, and no rank returns before
all have written.

If one rank shows another location, all ranks see that, begin anew in the next step, and move their
data through slots (USE_SLOTS). A rank with an output outside regions has a signature without
IN_REGION. So that rank only sees that signatures differ, and compares no locations. If two ranks
may receive into the same bytes all the same, a last step ends the collective here too. Else a rank
that has returned could write to its output while another rank copies to the same bytes.

Ranks with a short output show its location too. Else a rank could write to memory of its peers
before they have entered, and change data that they still read.
"""

from cobre_kernels.collective.calls import ShownWords, called
from cobre_kernels.collective.checks import bytes_of, displacement_of
from cobre_kernels.collective.regions import LOCATION, NO_REGION, may_be_shared, note_location
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.atomics import load_relaxed
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.shm.control import IN_REGION
from cobre_kernels.shm.step import next_generation, synchronise
from cobre_kernels.shm.wait import cell_of

LOCATION_BYTES = LOCATION.size_bytes
MIXED = -1

# Where the ranks of a node have their outputs.
PRIVATE = 0  # outside regions, as far as this rank knows before the first step
APART = 1  # some outputs are in regions, and no two outputs have bytes in common
MEETING = 2  # two outputs may have bytes in common


@routine
def receive(comm, call, output, into_region, by_slots):
    """Run one of the two routines of a body, in the end the same one on all ranks.

    ``into_region(comm, call)`` begins by :func:`meet_in_region`, and returns USE_SLOTS if
    :func:`meet_in_region` does. ``by_slots(comm, call, outputs)`` gets PRIVATE, APART or MEETING.
    The first step of ``by_slots`` may end with USE_SLOTS too, if the output of another rank is in a
    region; then ``by_slots`` runs again.
    """
    if may_be_shared(comm, output.address, output.size_bytes):
        note_location(comm, output)
        outcome = into_region(comm, call)
    else:
        outcome = by_slots(comm, call, PRIVATE)
    if outcome != USE_SLOTS:
        return outcome
    outputs = compare_outputs(comm, output.size_bytes)
    outcome = by_slots(comm, call, outputs)
    if outcome == OK and outputs == MEETING:
        return synchronise(comm, called(comm))
    return outcome


@routine
def meet_in_region(comm):
    """Go through a step; return OK if the outputs of all ranks are the same bytes of a region."""
    show_location(comm)
    shown = ShownWords(comm.signature | IN_REGION, comm.compared, comm.count)
    outcome = synchronise(comm, shown)
    for rank in range(comm.size if outcome == OK else 0):
        if not has_same_output(comm, rank):
            outcome = USE_SLOTS
    return outcome


@routine
def show_location(comm):
    """Put the location of this rank's output into its cell of the step that it enters next."""
    cell = cell_of(comm, comm.node.rank, next_generation(comm))
    move(cell.payload, comm.location.address, LOCATION_BYTES)


@routine
def location_of(comm, rank):
    """Return the location that a rank shows in the step that all ranks are in.

    The location lies in a record that the next call of this function overwrites.
    """
    shown = comm.node.shown_location
    move(shown.address, cell_of(comm, rank, comm.node.generation).payload, LOCATION_BYTES)
    return shown


@routine
def shows_location(comm, rank):
    """Tell whether a rank's output may be in a region, by its signature in the present step."""
    # Relaxed: this rank has loaded the flag (acquire), which was stored after the signature.
    return load_relaxed(cell_of(comm, rank, comm.node.generation).signature) & IN_REGION != 0


@routine
def has_same_output(comm, rank):
    """Tell whether a rank, which may be this one, shows the location of this rank's output."""
    own = comm.location
    if not shows_location(comm, rank):
        return False
    shown = location_of(comm, rank)
    return shown.region == own.region and shown.offset == own.offset


@routine
def compare_outputs(comm, size_bytes):
    """Return MEETING if two ranks may receive into the same bytes, else APART.

    The outputs that ranks show in the present step are APART if they ascend in the order of ranks.
    Any other order counts as MEETING, because to compare each output with each other output may
    cost more than a step.
    """
    region, end = NO_REGION, 0
    for rank in range(comm.node.size):
        if shows_location(comm, rank):
            shown = location_of(comm, rank)
            ascends = shown.region > region or (shown.region == region and shown.offset >= end)
            if not ascends:
                return MEETING
            region, end = shown.region, shown.offset + size_bytes
    return APART


@routine
def no_rank_writes(comm, call):
    """Tell whether each block of an allgatherv is in place already, or empty."""
    for rank in range(comm.size):
        shown = location_of(comm, rank)
        block = shown.offset + displacement_of(call, rank) * call.itemsize
        in_place = shown.send_region == shown.region and shown.send_offset == block
        if not in_place and bytes_of(call, rank) > 0:
            return False
    return True


@routine
def region_of_sends(comm):
    """Return the region from which all ranks send; NO_REGION if none sends from one; else MIXED."""
    region = comm.location.send_region
    for rank in range(comm.size):
        if location_of(comm, rank).send_region != region:
            return MIXED
    return region
