"""Theory of operation of a running tcp job: links, messages, states and time limits.

A leader speaks for its node; ``nodes/round.py`` has what happens on a node. The rendezvous has
opened two links for every two leaders:

=============== ===============================================================================
link            carries
=============== ===============================================================================
control         control messages, rarely
data            headers with small payloads; stripes; between neighbours on the ring of nodes
                also what goes around it, or along the chain
=============== ===============================================================================

A step is one collective; ``comm.generation`` is its number. It is a sequence of verbs:

1. Exchange: every leader sends every other one a header, with a small payload behind it, and
   compares each header with its own. This is one hop for any number of nodes.
2. Data: a payload that does not fit follows once the headers have agreed. Each receiver knows every
   length before the first byte comes, so every byte is received into its final address.

Messages (``frame.py`` has their bytes)

=============== =========================== ====================================================
message         sent by                     tells
=============== =========================== ====================================================
header          every leader, on data links step, whether its node differs, signature, length, when
                                            its last rank came
WAITING         a leader whose timeout is   liveness query: the sender waits in its step
                over, on control links
WAITING         a leader that reads a query liveness answer: it waits too, in its own step
                while it waits
FAILURE         a leader whose collective   failure report: step, and why each rank of the
                has failed                  communicator takes no further part
RAISED          a leader that closes or     by which exception a rank ended: its type, and the first
                reports, before it does     line of its text
SHUTDOWN        a leader that closes, or    goodbye: the last step that it has completed
                has told what it called
=============== =========================== ====================================================

States of a leader

=============== =========================== ====================================================
state           entered                     left
=============== =========================== ====================================================
OUTSIDE         no verb is under way        an exchange begins: EXCHANGE; a data verb: DATA
EXCHANGE        its header is posted        all headers are here: OUTSIDE
DATA            all have agreed             all bytes have moved: OUTSIDE
OVERDUE         EXCHANGE or DATA, no byte   a byte moves: back to it
                moves for timeout_ns
FAILED          a row below names a status  it closes: CLOSED, without a goodbye
CLOSED          its goodbye is sent         its links end
=============== =========================== ====================================================

What a leader in step s does, in EXCHANGE, DATA and OVERDUE alike. OUTSIDE, also while it waits for
ranks of its node, it reads nothing: what has come waits in the sockets until it blocks in a verb,
or for SWEEP_EVERY steps at most.

=================== ======================= ====================================================
row                 comes                   the leader
=================== ======================= ====================================================
header differs      another signature or    discards its payload, and waits for all headers; then
                    length                  the leaders tell what their ranks called
garbled             a frame that is not     as "data link ends", but loses that leader as GARBLED
                    the one due
data link ends      end of stream, error    waits EXPLANATION_MS for one of the next three rows,
                                            else loses that leader as DIED: LOST_PEER
control link ends   end of stream, error    loses that leader as DIED or UNREACHABLE: LOST_PEER
link closed here    EBADF: this process has     gives up itself: LOST_PEER, which names this leader
                    closed its descriptor
process ends        its descriptor (pidfd)  as "data link ends"; on one machine, where another
                                            process may hold the sockets of a dead leader
goodbye             SHUTDOWN of step t      t >= s: that leader has done its part; else loses it as
                                            LEFT: LOST_PEER
report              FAILURE of step t       t <= s: adopts it: TIMED_OUT if it knows of late ranks
                                            only, else LOST_PEER; if this leader is the late one,
                                            loses the reporter as GAVE_UP. t > s: it has done its
                                            part
raised              RAISED                  notes it in its journal
query               WAITING                 notes when; sends WAITING itself if it is blocked, not
                                            again within QUERY_NS
silence             no byte for timeout_ns  is OVERDUE: sends WAITING to all
no answer           none for ANSWER_NS      names those leaders LATE that are silent and that it
                                            waits for itself; in DATA, others may have completed the
                                            step: TIMED_OUT
no report           none for REPORT_NS      names every leader LATE that it waits for itself
signal              a handler raises        fails with INTERRUPTED, and reports that it gave up
=================== ======================= ====================================================

A late follower is named by its own leader, whose timeout begins as early: the others wait ANSWER_NS
for its report. A failed leader reports to all, also if it adopted another report: nobody knows
which is read first. Without it the others would take the messenger for the lost rank. A dead
process ends its streams, so every leader sees the death of another one itself. A leader whose step
ended in a disagreement says goodbye at once, as its program may end while others still hear.
"""

SWEEP_EVERY = 256  # steps; what peers may send meanwhile fits any socket's buffer
QUERY_NS = 50_000_000  # an answer to an answer would never end
ANSWER_NS = 400_000_000  # for the answers to a liveness query, and for the report of a late rank
REPORT_NS = 700_000_000  # and for the report of a leader that is nearer to the late one
EXPLANATION_MS = 200  # for the control message that explains why a data link ended
SEND_PATIENCE_MS = 100  # for a control message that does not fit the socket's buffer
REST_PATIENCE_MS = 1000  # for the rows of a report that has begun to come
