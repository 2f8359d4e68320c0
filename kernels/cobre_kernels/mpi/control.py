"""Control messages by MPI; ``nodes/messages.py`` has their meanings.

MPI may still read a message after this rank has begun to send it, so each message has its own place
in the outbox. A query or an answer may be sent several times from its place, because its words
never change. Any other message is sent once.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import MPI_MESSAGE
from cobre_kernels.nodes.messages import GOODBYE, RAISED, REPORT, Message, gets, take_in
from cobre_kernels.nodes.records import leader_of

TAG = 2
KIND_AT, SENDER_AT, NUMBER_AT = (MPI_MESSAGE.offsets[x] for x in ("kind", "sender", "number"))
HEAD_BYTES = MPI_MESSAGE.size_bytes
LAST_SENDS_NS = 100_000_000  # the time that this rank gives its last sends to complete


@kernel(COMM, Message)
def post_kernel(comm, call):
    """Begin to send a message; if it is this rank's last message, wait a little for the send."""
    mpi, nodes, words_bytes = comm.mpi, comm.nodes, WORD_BYTES * call.count
    message = _place_for(comm, call.kind)
    poke(message + KIND_AT, call.kind)
    poke(message + SENDER_AT, comm.rank)
    poke(message + NUMBER_AT, call.number)
    move(message + HEAD_BYTES, call.words, words_bytes)
    for node in range(nodes.nodes):
        if gets(comm, call, node):
            request = mpi.sends + WORD_BYTES * node
            leader = leader_of(nodes, node)
            calls.begin_send(mpi, message, HEAD_BYTES + words_bytes, leader, TAG, request)
            calls.test(mpi, request)
    if call.kind in (REPORT, GOODBYE):
        _await_sends(comm, call)
    return OK


@routine
def _place_for(comm, kind):
    """Return the place of a message in the outbox; places for exceptions follow the other kinds."""
    place = GOODBYE + 1 + comm.nodes.raised_told if kind == RAISED else kind
    return comm.mpi.outbox + place * comm.mpi.message_bytes


@routine
def _await_sends(comm, call):
    """Wait a little until the sends are complete.

    MPI may also read a message later, because the outbox stays in memory.
    """
    mpi = comm.mpi
    until = libc.monotonic_ns() + LAST_SENDS_NS
    for node in range(comm.nodes.nodes):
        while gets(comm, call, node):
            code = calls.test(mpi, mpi.sends + WORD_BYTES * node)
            if code != 0 or calls.flag_is_set(mpi) or libc.monotonic_ns() > until:
                break
            libc.sched_yield()


@kernel(COMM)
def read_kernel(comm):
    """Receive all messages that have arrived.

    All other leaders count as awaited, because MPI does not tell which of them it waits for.
    """
    mpi, nodes, message = comm.mpi, comm.nodes, comm.mpi.inbox
    for node in range(nodes.nodes):
        nodes.leaders[node].is_awaited = 1 if node != nodes.own_node else 0
    while True:
        if calls.match_message(mpi, TAG) != 0 or not calls.flag_is_set(mpi):
            return OK
        if calls.receive_matched(mpi, message.address, mpi.message_bytes) != 0:
            return OK
        words = message.address + HEAD_BYTES
        take_in(comm, message.sender, message.kind, message.number, words)
