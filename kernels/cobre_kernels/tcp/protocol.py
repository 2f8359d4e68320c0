"""Theory of operation of a running tcp job: links, messages, states and time limits.

Links (the rendezvous has opened them)

=============== =========================== ====================================================
link            between                     carries
=============== =========================== ====================================================
control         every two ranks             control messages, rarely
star            rank 0 and each other       what each rank called; small payloads
ring, one way   rank r and r + 1,           large payloads
                the last rank and rank 0
=============== =========================== ====================================================

A step is one collective. It has two phases:

1. Star: every rank sends rank 0 a header, with the payload behind it if that fits the star. Rank 0
   compares all headers with its own call, and sends the result back. Two ranks exchange headers and
   payloads directly.
2. Ring: a payload that does not fit follows after all ranks have agreed. Each receiver knows every
   length before the first byte comes, so every byte is received into its final address.

Messages (``frame.py`` has their bytes)

=============== =========================== ====================================================
message         sent by                     tells
=============== =========================== ====================================================
header          every rank, on the star     step, signature, length, detail
WAITING         a rank whose timeout is     liveness query: the sender waits in its step
                over, on control links
WAITING         a rank that reads a query   liveness answer: it waits too, in its own step
                while it waits
FAILURE         a rank whose collective     failure report: step, status, and for every rank reason
                has failed                  and call; without rows if it was interrupted
SHUTDOWN        a rank that closes          goodbye: the last step that it has completed
=============== =========================== ====================================================

States of a rank

=============== =========================== ====================================================
state           entered                     left
=============== =========================== ====================================================
OUTSIDE         no collective is under way  a collective begins: STAR
STAR            its header is posted        all have agreed: RING if the payload is large, else
                                            OUTSIDE
RING            all have agreed             all bytes have moved: OUTSIDE
OVERDUE         STAR or RING, and no byte   a byte moves: back to it
                moves for timeout_ns
FAILED          a row below names a status  it closes: CLOSED, without a goodbye
CLOSED          its goodbye is sent         its links end
=============== =========================== ====================================================

What a rank in step s does, in STAR, RING and OVERDUE alike. OUTSIDE it reads nothing: what has come
waits in the sockets until it blocks in a step, or for SWEEP_EVERY steps at most.

=================== ======================= ====================================================
row                 comes                   the rank
=================== ======================= ====================================================
header differs      another signature or    waits for all headers, then fails with DISAGREE; its
                    length                  report tells what every rank called
garbled             a frame that is not     as "data link ends", but loses that rank as GARBLED
                    the one due
data link ends      end of stream, error    waits EXPLANATION_MS for one of the next three rows,
                                            else loses that rank as DIED: LOST_PEER
control link ends   end of stream, error    loses that rank as DIED or UNREACHABLE: LOST_PEER
process ends        its descriptor (pidfd)  as "data link ends"; on one machine, where another
                                            process may hold the sockets of a dead rank
goodbye             SHUTDOWN of step t      t >= s: that rank has done its part; else loses it as
                                            LEFT: LOST_PEER
report              FAILURE of step t       t <= s with rows: adopts them and their status; without:
                                            loses that rank as GAVE_UP. t > s: it has done its part
query               WAITING                 notes when; sends WAITING itself if it is blocked, not
                                            again within QUERY_NS
silence             no byte for timeout_ns  is OVERDUE: sends WAITING to all
no answer, in STAR  none for ANSWER_NS      names the silent ranks LATE: TIMED_OUT. Rank 0 names
                                            only those whose header it waits for
no answer, in RING  none for ANSWER_NS      names silent neighbours LATE; the others may have
                                            completed the step
no report           none for REPORT_NS      names every rank LATE that it waits for itself
signal              a handler raises        fails with INTERRUPTED
=================== ======================= ====================================================

A failed rank sends its report to all, also if it adopted another one: nobody knows which is read
first. Without it the others would take the messenger for the lost rank. A dead process ends its
streams, so every rank sees a death itself, also while rank 0 computes.
"""

SWEEP_EVERY = 256  # steps; what peers may send meanwhile fits any socket's buffer
QUERY_NS = 50_000_000  # an answer to an answer would never end
ANSWER_NS = 200_000_000  # for the answers to a liveness query
ANSWER_POLL_MS = 20  # how often a rank looks meanwhile
REPORT_NS = 500_000_000  # and for the report of a rank that is nearer to the late one
EXPLANATION_MS = 200  # for the control message that explains why a data link ended
SEND_PATIENCE_MS = 100  # for a control message that does not fit the socket's buffer
REST_PATIENCE_MS = 1000  # for the rows of a report that has begun to come
