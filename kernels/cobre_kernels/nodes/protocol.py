"""The protocol among leaders: the states of a leader, the events, and what the leader does then.

:data:`ROWS` is the protocol. Kernels read this table (:func:`happen`, :func:`allows`), and the
model of the leaders in ``model/leaders.pml`` has the same rows.

Theory of operation
-------------------
Leaders call the same verbs in the same order, so a verb has the same number on all leaders. A
leader *waits* in a verb, and is in one of these states:

OUTSIDE
    It is in no round, or still waits for ranks of its own node.
ENTERED
    All ranks of its node are in, and it waits for the headers of all leaders: the prepare exchange.
PREPARED
    It has all headers, and waits for the commits of all leaders: the commit exchange.
MOVING
    It moves data in verbs that it can leave.
COMMITTED
    It moves data in a verb that no leader can leave: MPI may write to the buffers of callers.
ENDED
    It knows the outcome, and hands it out on its node.

If every verb can be left (``can_leave`` is 1), the first round of a collective prepares for all of
its rounds, and no round commits. If MPI moves data between the buffers of callers (``can_leave`` is
0: over MPI, with every rank alone on its node), each round prepares, and commits before data move.
So if a rank is lost before data move, leaders notice it in a wait that they can leave.

A *loss* is another leader that takes no further part, as far as this leader knows: the lost leader
has reported or said goodbye (``messages.py``), or its link has ended. A loss is *fresh* if the lost
leader has not completed the verb in which this leader waits. A loss that is not fresh has no effect
on this verb.

In every state in which it waits, a leader answers liveness queries, notes answers, keeps losses
that are not fresh, and has a line name late ranks. What else may happen depends on the state::

    row        state                        event             what the leader does
    ENTER      OUTSIDE                      NODE_IS_IN        begins the prepare exchange
    GO_ON      ENTERED                      AGREED_BEFORE     moves data
    AGREE      ENTERED                      NO_DATA           the outcome is OK
    DIRECT     ENTERED                      LEAVABLE_DATA     moves data, or exchanges calls
    PREPARE    ENTERED                      FINAL_DATA        begins the commit exchange
    COMMIT     PREPARED                     ALL_COMMIT        moves data, or exchanges calls
    INTERRUPT  ENTERED, MOVING              SIGNAL            reports that it gave up
    RELEASE    ENTERED, PREPARED, MOVING    FRESH_LOSS        names the lost, reports
    QUERY      ENTERED, MOVING              OVERDUE           asks all leaders whether they wait too
    LATE       ENTERED, MOVING              SILENCE           names the silent, reports
    CUT_OFF    ENTERED, MOVING              NO_REPORT         names the ranks out of reach, reports
    FAIL       each in which it waits       FAILURE           reports that it gave up
    HAND_OUT   all but OUTSIDE              OUTCOME           hands out the outcome

Why every wait ends, and none too early
---------------------------------------
*Always notify*: if a verb of a leader ends in anything but success, that leader reports to all
leaders. No leader is alone in a verb that it cannot leave: if one leader is COMMITTED, all leaders
have begun the commit exchange. So no leader gave up in the prepare exchange, no loss is fresh, and
all leaders become COMMITTED. If one leader gave up in the prepare exchange, the commit exchange
completes nowhere, and the report of that leader releases all leaders that are PREPARED. A lost
leader that is not a fresh loss has completed the verb. So every other leader completes the verb
too, even if the lost leader has ended meanwhile.

Time limits: while ENTERED or MOVING, a leader waits for ``timeout_ns`` since the last byte moved,
and then for answers. While PREPARED or COMMITTED it has no limit, and hears no signal. A follower
has ``timeout_ns`` to fetch an outcome. If the follower does not, its leader names the follower,
reports, and hands out this failure. A follower notices when its leader dies or gives up. The
leader's pulse beats as long as the leader waits or bytes move. If the pulse stops for
``timeout_ns``, the followers name the leader LATE (``collective/waiting/pulse.py``).

The pattern for a table that is executed is ``_state.py`` of h11.
"""

from typing import NamedTuple

import numpy as np

from cobre_kernels.machine.compiled import routine

STATES = OUTSIDE, ENTERED, PREPARED, MOVING, COMMITTED, ENDED = range(6)
EVENTS = (
    NODE_IS_IN,  # all ranks of the node have entered
    AGREED_BEFORE,  # every verb can be left, and this is not the first round of its collective
    NO_DATA,  # all headers have arrived, and are equal; no data have to move
    LEAVABLE_DATA,  # all headers have arrived; data move, or calls if headers differ
    FINAL_DATA,  # as LEAVABLE_DATA, but no leader can leave while data move
    ALL_COMMIT,  # all commits have arrived
    SIGNAL,  # a signal handler has raised, or forked
    FRESH_LOSS,  # a leader is lost and has not completed this verb
    OVERDUE,  # the timeout is over
    SILENCE,  # a leader that this leader waits for has not answered in time
    NO_REPORT,  # all leaders have answered, nothing moves, and no report has arrived
    FAILURE,  # MPI has failed
    OUTCOME,  # the round ends on this node
) = range(13)


class Row(NamedTuple):
    """In each of these states, an event leads to ``next``; if that is None, the state stays."""

    name: str
    states: tuple[int, ...]
    event: int
    next: int | None


_WAITS = (ENTERED, PREPARED, MOVING, COMMITTED)
ROWS = (
    Row("ENTER", (OUTSIDE,), NODE_IS_IN, ENTERED),
    Row("GO_ON", (ENTERED,), AGREED_BEFORE, MOVING),
    Row("AGREE", (ENTERED,), NO_DATA, ENDED),
    Row("DIRECT", (ENTERED,), LEAVABLE_DATA, MOVING),
    Row("PREPARE", (ENTERED,), FINAL_DATA, PREPARED),
    Row("COMMIT", (PREPARED,), ALL_COMMIT, COMMITTED),
    Row("INTERRUPT", (ENTERED, MOVING), SIGNAL, ENDED),
    Row("RELEASE", (ENTERED, PREPARED, MOVING), FRESH_LOSS, ENDED),
    Row("QUERY", (ENTERED, MOVING), OVERDUE, None),
    Row("LATE", (ENTERED, MOVING), SILENCE, ENDED),
    Row("CUT_OFF", (ENTERED, MOVING), NO_REPORT, ENDED),
    Row("FAIL", _WAITS, FAILURE, ENDED),
    Row("HAND_OUT", (*_WAITS, ENDED), OUTCOME, OUTSIDE),
)

NOTHING = -1  # in place of a next state: this state has no row for the event


def _next_states():
    """Return the next state for each state and event."""
    table = np.full((len(STATES), len(EVENTS)), NOTHING)
    for row in ROWS:
        for state in row.states:
            table[state, row.event] = state if row.next is None else row.next
    return table


NEXT = _next_states()


@routine
def allows(comm, event):
    """Tell whether the table has a row for an event in this leader's state."""
    return NEXT[comm.nodes.state, event] != NOTHING


@routine
def happen(comm, event):
    """Go to the state to which an event leads; return False if this state has no row for it."""
    state = NEXT[comm.nodes.state, event]
    if state == NOTHING:
        return False
    comm.nodes.state = state
    return True
