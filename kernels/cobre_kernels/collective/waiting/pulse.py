"""The pulse of a leader: it shows the ranks of a node that their leader goes on.

The leader of a node waits for other nodes as long as bytes move. Its pulse beats whenever bytes
move, and every tick while it waits. For a rank that waits for its leader, the timeout counts from
the last beat. So a stopped leader is late, and a slow network is not.
"""

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
    """As the leader of a node, show that this rank goes on."""
    if comm.nodes.address == 0:
        return
    beats = comm.nodes.staging.pulse.beats
    store_relaxed(beats, load_relaxed(beats) + 1)


@routine
def heed_pulse(comm):
    """Let the timeout count from now if the pulse that this rank watches has beaten."""
    if comm.pulse.address == 0:
        return
    beats = load_relaxed(comm.pulse.beats)
    if beats != comm.beats_heard:
        comm.beats_heard = beats
        comm.wait.began_ns = comm.wait.clock_ns
