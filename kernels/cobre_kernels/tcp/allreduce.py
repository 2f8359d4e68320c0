"""Allreduce: rank 0 folds small payloads in rank order; the chain of ranks folds large ones."""

from cobre_kernels.collective.calls import Allreduce
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import star
from cobre_kernels.tcp.chain import fold_operands, reduce_along_chain
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.tags import ALLREDUCE_RECV, ALLREDUCE_SEND


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Choose the way by the number of bytes and of ranks; ``comm.length`` is the payload."""
    begin_step(comm)
    if not star.fits_star(comm, comm.length):
        outcome = star.agree(comm, star.ALLREDUCE_TAGS)
        return reduce_along_chain(comm, call) if outcome == OK else outcome
    if not star.has_partner(comm):
        return _as_coordinator(comm, call)
    outcome = star.exchange(comm, star.ALLREDUCE_TAGS, call.send, comm.length, comm.length)
    if outcome == OK:
        payload = star.payload_from(comm, star.partner_of(comm))
        if comm.size == star.PAIR:
            fold_operands(comm, call, payload, 0, comm.length)
        else:
            move(call.recv, payload, comm.length)
    return outcome


@routine
def _as_coordinator(comm, call):
    """Fold what all others send, in rank order for any order of arrival."""
    for rank in range(1, comm.size):
        star.post_recv(comm, rank, ALLREDUCE_SEND, comm.length)
    outcome = star.transfer(comm)
    if outcome != OK:
        return outcome
    if call.send != call.recv:
        move(call.recv, call.send, comm.length)
    for rank in range(1, comm.size):
        fold(comm, call, call.recv, star.payload_from(comm, rank), comm.length)
    return star.send_to_all(comm, ALLREDUCE_RECV, call.recv, comm.length)
