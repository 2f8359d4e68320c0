"""Finds out which rank entered a collective last, among the ranks of several nodes.

The header of each leader tells which rank of its node arrived last, and when. A leader compares
these times, although each of them comes from the clock of another machine. NTP keeps such clocks
within a millisecond of each other. So if two ranks arrive within a millisecond, the wrong rank may
be named. How long a rank has waited is measured by its own clock alone.
"""

from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.ticks import ticks
from cobre_kernels.nodes.records import own_staging

RANK_BITS = 12  # enough for MAX_RANKS; microseconds since 1970 fit the other 51 until 2041
NS_PER_US = 1000
LATE_US = 20  # a node that arrives this much later than this node counts as waited for


@routine
def note_node(comm):
    """Write into this leader's header that the last rank of its node has arrived just now."""
    last = comm.last if comm.came != 0 else comm.rank
    comm.nodes.header.came = libc.realtime_ns() // NS_PER_US << RANK_BITS | last


@routine
def note_last_node(comm):
    """As a leader that has all headers, note the last rank, if it is of another node."""
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
    """As a leader, tell the ranks of this node which rank of another node arrived last."""
    nodes, staging = comm.nodes, own_staging(comm.nodes)
    is_other = comm.came != 0 and nodes.node_of[comm.last] != nodes.own_node
    store_relaxed(staging.came, comm.came if is_other else 0)
    store_relaxed(staging.last, comm.last)


@routine
def take_last(comm):
    """As a follower, note the last rank, if the leader shows a rank of another node."""
    staging = comm.nodes.of_lane[0].staging
    came = load_relaxed(staging.came)
    if came != 0:
        comm.came = came
        comm.last = load_relaxed(staging.last)
