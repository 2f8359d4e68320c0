"""The pulse of a leader: it shows the ranks of a node that their leader goes on.

The leader of a node goes on waiting for other nodes while bytes move. Its pulse beats whenever
bytes move, and every tick while it waits. For a rank that waits for its leader, the timeout counts
from the last beat. So a stopped leader is late, and a slow network is not.
"""

from cobre_kernels.collective.comm import LEADERS
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.record import Record, shared
from cobre_kernels.machine.routine import routine

PULSE = Record(
    "Pulse",
    "Shows the ranks of a node that their leader goes on.",
    beats=shared("how often it has beaten"),
)


@routine
def beat(comm):
    """As a leader that waits for other leaders, show the ranks of this node that it goes on."""
    if comm.wait.among == LEADERS:
        store_relaxed(comm.pulse.beats, load_relaxed(comm.pulse.beats) + 1)


@routine
def heed_pulse(comm):
    """As a follower, let the timeout count from now if the leader's pulse has beaten."""
    if comm.pulse.address == 0 or comm.node.rank == 0:
        return
    beats = load_relaxed(comm.pulse.beats)
    if beats != comm.beats_heard:
        comm.beats_heard = beats
        comm.wait.began_ns = comm.wait.clock_ns
