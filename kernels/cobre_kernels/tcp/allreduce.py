"""Allreduce: rank 0 folds small payloads in rank order; the chain of ranks folds large ones."""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_allreduce
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.guard import enter, leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import ALLREDUCE, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.chain import reduce_along
from cobre_kernels.tcp.shared import transfer
from cobre_kernels.tcp.star import PAIR, agree, ask, exchange, finish, fits_star, reply
from cobre_kernels.tcp.table import is_hub
from cobre_kernels.tcp.tags import ALLREDUCE_RECV, ALLREDUCE_SEND
from cobre_kernels.tcp.transfer import body_from, expect
from cobre_kernels.tcp.wait import begin_step


@kernel(arguments=7)
def allreduce_kernel(state, send, send_count, recv, recv_count, itemsize, dtype, op):
    """Fold ``send`` of all ranks into ``recv``; arguments are addresses and numbers of elements."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    outcome = check_allreduce(send, send_count, recv, recv_count, itemsize, dtype, op)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLREDUCE, dtype, op)
    size_bytes = send_count * itemsize
    thread = libc.release_gil()
    begin_step(state, kind, size_bytes, send_count)
    size = peek(state + layout.COMM_SIZE)
    if size == 1:
        if send != recv:
            move(recv, send, size_bytes)
    elif not fits_star(state, size_bytes):
        outcome = agree(state, ALLREDUCE_SEND, ALLREDUCE_RECV)
        if outcome == OK:
            outcome = reduce_along(state, send, recv, size_bytes, itemsize, dtype, op)
    elif size == PAIR:
        outcome = _swap(state, send, recv, size_bytes, itemsize, dtype, op)
    elif is_hub(state):
        outcome = _gather(state, send, recv, size_bytes, itemsize, dtype, op)
    else:
        outcome = ask(state, ALLREDUCE_SEND, op, send, size_bytes, ALLREDUCE_RECV, size_bytes)
        if outcome == OK:
            move(recv, body_from(state, 0), size_bytes)
    outcome = finish(state, outcome, kind)
    libc.regain_gil(thread)
    return outcome


@routine
def _swap(state, send, recv, size_bytes, itemsize, dtype, op):
    """Two ranks: each gets the other's and folds both, rank 0's first."""
    outcome = exchange(state, ALLREDUCE_SEND, op, send, size_bytes, size_bytes)
    if outcome != OK:
        return outcome
    theirs = body_from(state, 1 - peek(state + layout.RANK))
    if is_hub(state):
        if send != recv:
            move(recv, send, size_bytes)
        fold(state, dtype, op, recv, theirs, size_bytes // itemsize)
    else:
        fold(state, dtype, op, theirs, send, size_bytes // itemsize)
        move(recv, theirs, size_bytes)
    return OK


@routine
def _gather(state, send, recv, size_bytes, itemsize, dtype, op):
    """As rank 0, fold what all others send, in rank order whatever the order of arrival."""
    size = peek(state + layout.COMM_SIZE)
    for rank in range(1, size):
        expect(state, rank, ALLREDUCE_SEND, op, size_bytes)
    outcome = transfer(state)
    if outcome != OK:
        return outcome
    if send != recv:
        move(recv, send, size_bytes)
    for rank in range(1, size):
        fold(state, dtype, op, recv, body_from(state, rank), size_bytes // itemsize)
    return reply(state, ALLREDUCE_RECV, op, recv, size_bytes)
