"""Outputs in a region: ranks that receive into the same bytes of it need one copy, not one each.

A rank that finds its output in a region enters the first step with IN_REGION in its signature, and
the location in place of a payload. If all ranks show the same location, each writes its part there,
and a last step ends the collective. So a rank writes only when all have entered, and none returns
before all have written. If one rank shows another location, all see that. Then they begin anew in
the next step, and their data go through slots (USE_SLOTS). A rank whose output lies elsewhere has a
signature without IN_REGION, so it sees that signatures differ, and compares no locations. If two
ranks may still receive into the same bytes, a last step ends the collective here too. Else a rank
that has returned could write to its output while another one copies.

Short outputs show their location too. Else a rank could write to memory of its peers before they
have entered, and change data that they still read.
"""

from cobre_kernels.collective.calls import ShownWords
from cobre_kernels.collective.checks import bytes_of, displacement_of
from cobre_kernels.collective.regions import LOCATION, NO_REGION
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.atomics import load_relaxed
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.shm.control import IN_REGION
from cobre_kernels.shm.step import await_all, publish
from cobre_kernels.shm.wait import cell_of

LOCATION_BYTES = LOCATION.size_bytes
MIXED = -1


@routine
def meet_in_region(comm, generation):
    """Go through a step; return OK if the outputs of all ranks are the same bytes of a region."""
    shown = ShownWords(comm.signature | IN_REGION, comm.compared, comm.count)
    show_location(comm, generation)
    publish(comm, generation, shown)
    outcome = await_all(comm, generation, shown)
    own = comm.location
    for rank in range(comm.size if outcome == OK else 0):
        other = location_of(comm, rank, generation)
        same = other.region == own.region and other.offset == own.offset
        if own.region == NO_REGION or not same:
            outcome = USE_SLOTS
    return outcome


@routine
def show_location(comm, generation):
    """Put the location of this rank's output into its cell of the step that it enters next."""
    cell = cell_of(comm, comm.node.rank, generation)
    move(cell.payload, comm.location.address, LOCATION_BYTES)


@routine
def location_of(comm, rank, generation):
    """Return the location that a rank shows in this step; the next call overwrites the record."""
    shown = comm.node.shown_location
    move(shown.address, cell_of(comm, rank, generation).payload, LOCATION_BYTES)
    return shown


@routine
def shows_location(comm, rank):
    """Tell whether a rank's output may be in a region, by the step that all are in."""
    # Relaxed: the flag that this rank has awaited was stored after it.
    return load_relaxed(cell_of(comm, rank, comm.node.generation).signature) & IN_REGION != 0


@routine
def outputs_meet(comm, size_bytes):
    """Tell whether two ranks may receive into the same bytes, by the step that all are in.

    They do not if their outputs ascend in the order of ranks. Otherwise the answer is yes, because
    to compare each with each may cost more than a step.
    """
    node, region, end = comm.node, NO_REGION, 0
    for rank in range(node.size):
        if shows_location(comm, rank):
            shown = location_of(comm, rank, node.generation)
            ascends = shown.region > region or (shown.region == region and shown.offset >= end)
            if shown.region == NO_REGION or not ascends:
                return True
            region, end = shown.region, shown.offset + size_bytes
    return False


@routine
def no_rank_writes(comm, call, generation):
    """Tell whether each block of an allgatherv is in place already, or empty."""
    for rank in range(comm.size):
        shown = location_of(comm, rank, generation)
        block = shown.offset + displacement_of(call, rank) * call.itemsize
        in_place = shown.send_region == shown.region and shown.send_offset == block
        if not in_place and bytes_of(call, rank) > 0:
            return False
    return True


@routine
def region_of_sends(comm, generation):
    """Return the region from which all ranks send; NO_REGION if none sends from one; else MIXED."""
    region = comm.location.send_region
    for rank in range(comm.size):
        if location_of(comm, rank, generation).send_region != region:
            return MIXED
    return region
