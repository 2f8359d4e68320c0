"""Allreduce: MPI moves contributions, our fold reduces them in rank order.

On a flat communicator a few bytes travel with the headers. Up to GATHER_BYTES every rank's
contribution goes to every node, and every rank folds them all. Above, stripes move less
(``stripes.py``).
"""

from cobre_kernels.collective.calls import Allreduce
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.counts import put_given_by_node
from cobre_kernels.mpi.records import EAGER_BYTES, is_flat, is_leader, next_half
from cobre_kernels.mpi.round import enter_eager_round, enter_round, hand_out
from cobre_kernels.mpi.stripes import fold_contributions, reduce_in_stripes

GATHER_BYTES = 16384  # of one contribution; above, stripes cost less


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Choose one of the three ways; ``comm.length`` is the payload in bytes."""
    if is_flat(comm) and comm.length <= EAGER_BYTES:
        return _eager(comm, call)
    if comm.length <= min(GATHER_BYTES, comm.mpi.half_bytes // comm.size):
        return _gathered(comm, call)
    return reduce_in_stripes(comm, call)


@routine
def _eager(comm, call):
    size_bytes = comm.length
    outcome = hand_out(comm, enter_eager_round(comm, call.send, size_bytes))
    if outcome == OK:
        headers = comm.mpi.headers
        move(call.recv, headers[0].payload, size_bytes)
        for rank in range(1, comm.size):
            fold(comm, call, call.recv, headers[rank].payload, size_bytes)
    return outcome


@routine
def _gathered(comm, call):
    mpi, size_bytes = comm.mpi, comm.length
    half = next_half(mpi)
    move(half + mpi.node_index[comm.rank] * size_bytes, call.send, size_bytes)
    outcome = enter_round(comm, True)
    if outcome == OK and is_leader(comm):
        put_given_by_node(comm, size_bytes)
        outcome = calls.allgatherv(comm, half)
    outcome = hand_out(comm, outcome)
    if outcome == OK:
        fold_contributions(comm, call, call.recv, half, (size_bytes, size_bytes))
    return outcome
