"""The verbs: what a transport does for the leaders of nodes.

A transport is a folder with the kernels of this table. The transport lists them in its ``Verbs``
(``backends/nodes/memory.py``), and the Nodes record holds their addresses. The first five verbs
move data: all leaders call them, and no other rank does. ``exchange`` finds out whether the calls
of leaders agree. The other four begin only if the calls agree, except for one use of
``allgatherv``: it lets leaders learn all calls if the calls differ (``failing.py``).

A verb returns OK, or how it has failed: LOST_PEER, TIMED_OUT, INTERRUPTED, IS_FORKED, MPI_FAILED.
If ranks are missing, ``waiting.py`` has written into ``comm.failures`` which ranks, and why.

==============  ======================  =========================================================
verb            call                    what it does
==============  ======================  =========================================================
``exchange``    :class:`Exchange`       gives every leader ``nodes.header`` and a payload; takes
                                        their headers to ``nodes.headers``, and recv_bytes[k] bytes
                                        of k's payload to landing[k] if k's header equals its own.
                                        OK says that all headers are here, equal or not
``allgatherv``  :class:`Gather`         leader k sends block_bytes[k] bytes at block_at[k] of the
                                        buffer, all others receive them at the same place
``broadcast``   :class:`Cast`           one leader gives its buffer to all
``alltoallv``   :class:`Scatter`        leader k gets send_bytes[k] bytes at send_at[k] of
                                        ``send``, and gives recv_bytes[k] to recv_at[k] of
                                        ``recv``
``chain``       :class:`Chain`          folds in the order of nodes; 0: the transport has none
``post``        ``Message``             sends a control message (messages.py): to the leader of a
                                        node, or to every other leader that ``gets`` it. Waits a
                                        little until the last message of a rank is sent
``read``        none                    gives each control message that is here to ``take_in``, and
                                        each link that has ended to ``note_end``; says in
                                        ``nodes.leaders`` which leaders are awaited
``block``       ``Patience``            sleeps until bytes or messages may be here, and reads
                                        neither. Calls ``look_around_soon`` if a message, or a
                                        signal, has ended its sleep
==============  ======================  =========================================================

The words of this table are in the Nodes record, which has tables with a word for each node. A
leader's own payload is at its landing already; its own part of an ``alltoallv`` moves like any
other part.

A verb of data is a loop of the transport::

    outcome = begin_verb(comm)
    while outcome == OK and something is left:
        move what can move
        if bytes have moved:
            note_progress(comm)
        else:
            comm.wait.awaited = the first leader that is awaited, or ANOTHER_NODE
            outcome = pause(comm, looks)
    return end_verb(comm, outcome)

``pause`` is a function of ``collective/waiting/patience.py``; ``begin_verb``, ``note_progress`` and
``end_verb`` are functions of ``waiting.py``. A transport that sees no bytes move does not call
``note_progress``. If bytes arrive that are not due, the transport calls ``lose`` with the reason
GARBLED, and the verb ends as ``failure_of_verb`` says.

Above the transports, one protocol decides which ranks are lost, how long a leader waits, and what
the leader asks and answers. If ``nodes.can_leave`` is 1, a leader can leave every verb. If it is 0,
a leader can leave only ``exchange``, so leaders commit before any other verb (``protocol.py``). A
verb that has ended early may leave work behind, such as a request of MPI. This work may touch only
memory that exists as long as the process.
"""

from typing import NamedTuple


class Exchange(NamedTuple):
    """Exchange the first ``size_bytes`` bytes of headers, with a payload behind each header."""

    size_bytes: int
    payload: int
    payload_bytes: int


class Gather(NamedTuple):
    """Gather parts of a buffer, in place; ``is_agreed`` is 0 if the headers of leaders differ."""

    buffer: int
    is_agreed: int


class Cast(NamedTuple):
    """Broadcast a buffer from the leader of a node."""

    buffer: int
    size_bytes: int
    root_node: int


class Scatter(NamedTuple):
    """Give each leader its part of the buffer ``send``, and get a part of ``recv`` from each."""

    send: int
    recv: int


class Chain(NamedTuple):
    """Fold contributions of all ranks, if the order of nodes is the order of ranks.

    The contributions of this node's ``ranks`` ranks are ``stride`` bytes apart in rank order, and
    have ``length`` bytes each. ``result`` gets the fold on every leader. If there are only two
    ranks, on nodes of their own, ``result`` may be the memory of the rank's contribution.
    """

    contributions: int
    stride: int
    ranks: int
    result: int
    length: int
    dtype: int
    op: int
