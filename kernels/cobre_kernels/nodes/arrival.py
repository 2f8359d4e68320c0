"""Which rank comes last, among the ranks of several nodes.

The header of a leader tells when the last rank of its node came, and which one that was. Clocks of
machines agree by NTP, to a millisecond or better: a rank that is late by less may be mistaken for
another one. How long a rank waits is measured by its own clock.
"""

from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.routine import routine
from cobre_kernels.machine.ticks import ticks

RANK_BITS = 12  # of 4096 ranks at most
NS_PER_US = 1000
LATE_US = 20  # a node that comes so much later is waited for


@routine
def note_node(comm):
    """Let this leader's header tell when the last rank of its node came: now."""
    last = comm.last if comm.came != 0 else comm.rank
    comm.nodes.header.came = libc.realtime_ns() // NS_PER_US << RANK_BITS | last


@routine
def note_last_node(comm):
    """As a leader that has all headers, note which rank came last if it is of another node."""
    nodes = comm.nodes
    own = nodes.headers[nodes.own_node].came
    came = own
    for node in range(nodes.nodes):
        came = max(came, nodes.headers[node].came)
    if (came >> RANK_BITS) - (own >> RANK_BITS) > LATE_US:
        comm.came = ticks()
        comm.last = min(came & ((1 << RANK_BITS) - 1), comm.size - 1)


@routine
def show_last(comm):
    """As a leader, tell the ranks of this node which rank of another one came last."""
    nodes, staging = comm.nodes, comm.nodes.staging
    is_other = comm.came != 0 and nodes.node_of[comm.last] != nodes.own_node
    store_relaxed(staging.came, comm.came if is_other else 0)
    store_relaxed(staging.last, comm.last)


@routine
def take_last(comm):
    """As a follower, take that from the leader; else what this rank saw on its node holds."""
    came = load_relaxed(comm.nodes.staging.came)
    if came != 0:
        comm.came = came
        comm.last = load_relaxed(comm.nodes.staging.last)
