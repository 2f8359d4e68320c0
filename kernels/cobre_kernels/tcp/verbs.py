"""The verbs over sockets; ``nodes/verbs.py`` says what each of them does."""

from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.nodes.verbs import Cast, Chain, Exchange, Gather, Scatter
from cobre_kernels.tcp.chain import reduce_along_chain
from cobre_kernels.tcp.progress.control import say_goodbye, send_report
from cobre_kernels.tcp.progress.neighbours import advance_kernel
from cobre_kernels.tcp.progress.transfer import post_recv, post_send, transfer, transfer_kernel
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.tags import EXCHANGE, STRIPE


@kernel(COMM, Exchange)
def exchange_kernel(comm, call):
    """Send header and payload to every other leader, and receive theirs, all at the same time."""
    nodes, own = comm.nodes, comm.nodes.own_node
    for node in range(nodes.nodes):
        if node != own:
            post_recv(comm, node, EXCHANGE, nodes.landing[node], nodes.got[node])
            post_send(comm, node, EXCHANGE, call.payload, call.payload_bytes)
    move(nodes.headers[own].address, nodes.header.address, call.size_bytes)
    if nodes.landing[own] != call.payload and call.payload_bytes > 0:
        move(nodes.landing[own], call.payload, call.payload_bytes)
    return transfer(comm)


@kernel(COMM, Scatter)
def alltoallv_kernel(comm, call):
    """Send and receive likewise; a header before each part costs little beside it."""
    nodes, own = comm.nodes, comm.nodes.own_node
    for node in range(nodes.nodes):
        if node != own:
            post_recv(comm, node, STRIPE, call.recv + nodes.got_at[node], nodes.got[node])
            post_send(comm, node, STRIPE, call.send + nodes.given_at[node], nodes.given[node])
    source, target = call.send + nodes.given_at[own], call.recv + nodes.got_at[own]
    if source != target:
        move(target, source, nodes.given[own])
    return transfer(comm)


@kernel(COMM, Gather)
def allgatherv_kernel(comm, call):
    """Relay what every node gives around the ring."""
    nodes = comm.nodes
    for node in range(nodes.nodes):
        set_block(comm, node, call.buffer + nodes.given_at[node], nodes.given[node])
    return relay(comm)


@kernel(COMM, Cast)
def broadcast_kernel(comm, call):
    """Relay what the root's node alone gives."""
    for node in range(comm.nodes.nodes):
        set_block(comm, node, call.buffer, call.size_bytes if node == call.root_node else 0)
    return relay(comm)


@kernel(COMM, Chain)
def chain_kernel(comm, call):
    """Fold from node to node."""
    return reduce_along_chain(comm, call)


@kernel(COMM, Outcome)
def report_kernel(comm, call):
    """Send the failure report, or after a disagreement a goodbye: then all have heard of it.

    Also a leader that adopted another report sends one: either may be read first.
    """
    if call.status == DISAGREE:
        say_goodbye(comm)
    else:
        send_report(comm)
    return OK


@kernel(COMM)
def goodbye_kernel(comm):
    """Tell all others that this leader closes, and the last step that it has completed."""
    say_goodbye(comm)
    return OK


KERNELS = (
    exchange_kernel,
    alltoallv_kernel,
    allgatherv_kernel,
    broadcast_kernel,
    chain_kernel,
    report_kernel,
    goodbye_kernel,
    transfer_kernel,
    advance_kernel,
)
