"""What closing needs from Python: tell this node and the other leaders."""

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.mpi import table
from cobre_kernels.mpi.news import send_notice
from cobre_kernels.mpi.table import leads, table_of
from cobre_kernels.shm.step import announce


@kernel(arguments=0)
def tell_left_kernel(state):
    """Tell the others that this rank enters no further round.

    Ranks of this node see it in shared memory. Leaders tell each other; a rank that does not lead
    is missed by its leader in the next round.
    """
    state = address_of(state)
    mpi = table_of(state)
    announce(peek(mpi + table.LOCAL), layout.CLOSED)
    if leads(mpi):
        own = state + layout.RANK_RECORDS + peek(state + layout.RANK) * layout.RECORD_BYTES
        poke(own + layout.REASON, layout.LEFT)
        send_notice(state)
    return 0


KERNELS = (tell_left_kernel,)
