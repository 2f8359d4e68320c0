"""Barrier: one round without data. Also the agreement on other collective calls, and the fence."""

from cobre_kernels import layout, libc
from cobre_kernels.collective.guard import enter as claim
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.kind import FENCE
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import table
from cobre_kernels.mpi.news import tell_failure
from cobre_kernels.mpi.round import finish
from cobre_kernels.mpi.shared import enter, meet
from cobre_kernels.mpi.table import node_size, table_of
from cobre_kernels.shm.step import record_calls


@kernel(arguments=2)
def synchronise_kernel(state, kind, length):
    """No rank returns before all have entered with the same ``kind`` and ``length``.

    A fence is for the ranks of one node, who share the region.
    """
    state = address_of(state)
    outcome = claim(state)
    if outcome != OK:
        return outcome
    mpi = table_of(state)
    thread = libc.release_gil()
    if kind & 0xFF == FENCE:
        outcome = _fence(state, mpi, kind, length)
    else:
        outcome = meet(state, mpi, kind, length, 0, False)
    libc.regain_gil(thread)
    return finish(state, mpi, outcome, kind)


@routine
def _fence(state, mpi, kind, length):
    outcome = enter(state, mpi, kind, length, 0)
    if outcome == DISAGREE:
        _record_node(state, mpi)
        tell_failure(state, layout.GAVE_UP)
    return outcome


@routine
def _record_node(state, mpi):
    """Keep what the ranks of this node called; of the others, who take no part, nothing."""
    local = peek(mpi + table.LOCAL)
    record_calls(local)
    for rank in range(peek(state + layout.COMM_SIZE)):
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        poke(record + layout.RECORD_KIND, 0)
    first = peek(peek(mpi + table.STARTS) + 8 * peek(mpi + table.NODE))
    for place in range(node_size(mpi, peek(mpi + table.NODE))):
        rank = peek(peek(mpi + table.ORDER) + 8 * (first + place))
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        source = local + layout.RANK_RECORDS + place * layout.RECORD_BYTES
        for word in (layout.RECORD_KIND, layout.RECORD_LENGTH, layout.RECORD_DETAIL):
            poke(record + word, peek(source + word))
