"""The pulse of a leader: it shows the ranks of a node that their leader continues.

The leader of a node continues to wait for other nodes while bytes move, and so does each rank that
leads the node in a lane. The pulse of such a rank beats whenever bytes move, and every tick while
the rank waits. If another rank of the node waits for such a rank, the timeout of that wait counts
from the last beat. So a leader that has stopped is late, but a leader behind a slow network is not.
"""

from cobre_kernels.collective.comm import LEADERS, RANKS
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.record import Record, shared

PULSE = Record(
    "Pulse",
    "Shows the ranks of a node that their leader continues.",
    beats=shared("how often the pulse has beaten"),
)


@routine
def beat(comm):
    """Show the ranks of this node that this rank continues, if it waits for other leaders."""
    if comm.wait.among == LEADERS:
        store_relaxed(comm.pulse.beats, load_relaxed(comm.pulse.beats) + 1)


@routine
def heed_pulse(comm):
    """Start the timeout anew if the awaited rank leads its node and its pulse has beaten."""
    rank = comm.wait.node_rank
    if comm.wait.among != RANKS or rank >= comm.pulses_count:
        return
    beats = load_relaxed(comm.pulses[rank])
    if beats != comm.beats_heard:
        comm.beats_heard = beats
        comm.wait.began_ns = comm.wait.clock_ns
