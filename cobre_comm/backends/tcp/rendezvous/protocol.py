"""Theory of operation of the tcp rendezvous: states, messages and time limits.

Rank 0 is the coordinator; every other rank is a worker. Four phases lead from nothing to a job:

1. Attach: each worker opens a control link to rank 0 and tells at which port it listens.
2. Tell: when all workers have attached, rank 0 sends JOB to each of them.
3. Link: each worker asks by an empty PART, and rank 0 answers with PEERS: where the leaders listen.
   The leader of each node opens its links to the leaders of lower rank. Where there are several
   lanes (``nodes/lanes.py`` of the kernels), the leaders of each lane link among themselves.
4. Start: an exchange, in which each worker that has all its links takes part.

Before ranks link, they exchange as often as they need to find their nodes (``nodes/sharing.py``).
In an exchange every worker sends PART to rank 0, and rank 0 sends the PARTS of all ranks to every
worker: so all ranks take the same steps. If all ranks are on one node, they skip the third phase.
Followers need PEERS for later splits, in which a rank is found at the host of its leader. So PEERS
has a row for each leader, not for each rank.

Of two ranks, the higher rank connects and the lower rank accepts. Nothing is read from a connection
before its handshake. Each connection is a task of an event loop, so a silent peer delays no other.
After the start no rank listens at these ports. If there are several nodes, each rank then listens
at another port, where survivors find it (``tcp/callers.py``).

States of a connection at its accepting end (``acceptor.py``)

=============== =========================== ====================================================
state           entered                     left
=============== =========================== ====================================================
UNAUTHENTICATED accepted; CHALLENGE sent    right proof: PROVEN; anything else, or nothing within
                                            HANDSHAKE_S: DROPPED; too many, and this is the
                                            oldest of the host that has most: EVICTED
PROVEN          HANDSHAKE with right proof  fields fit the job: ADMITTED, else REFUSED
ADMITTED        ACK sent                    it is a link of the job now
REFUSED         REFUSED sent with the why   closed and logged; the job continues without it
DROPPED         never proven                closed and logged; the job continues without it
EVICTED         to make room                closed and logged; the job continues without it
=============== =========================== ====================================================

States of a connection at its connecting end (``connector.py``)

=============== =========================== ====================================================
state           entered                     left
=============== =========================== ====================================================
CONNECTING      an address is tried         connected: CONNECTED; an error, or nothing within
                                            CONNECT_S: FAILED
CONNECTED       the network has answered    CHALLENGE: PROVING; anything else, or nothing within
                                            CHALLENGE_S: FAILED
PROVING         HANDSHAKE sent              ACK: ADMITTED; REFUSED with right proof: REFUSED;
                                            closed, or a wrong proof: FAILED. No limit of its
                                            own: the other end may have admitted it already
ADMITTED        ACK with right proof        it is a link of the job now
REFUSED         REFUSED with right proof    this rank raises InitializationFailed
FAILED          as above                    closed; the next address, after a pause all again
=============== =========================== ====================================================

States of a worker as rank 0 sees it (``coordinator.py``)

=============== =========================== ====================================================
state           entered                     left
=============== =========================== ====================================================
ABSENT          at the beginning            its control link is ADMITTED: ATTACHED
ATTACHED        control link ADMITTED       all are ATTACHED: JOB sent, BUSY
BUSY            JOB, PEERS or PARTS sent    PART received: READY
READY           it waits in an exchange,    all are READY: PARTS or PEERS sent; BUSY, or
                or for PEERS                started
(any)                                       its control link ends, or brings REFUSED: rank 0
                                            sends REFUSED to all others and raises
=============== =========================== ====================================================

Messages: frames of u32 length, u8 tag, payload; integers are big-endian

=============== =========================== ====================================================
message         sent by                     payload
=============== =========================== ====================================================
CHALLENGE       accepting end, first        magic, version, whether all is loopback, nonce
HANDSHAKE       connecting end              the fields of ``Handshake``, proof
ACK             accepting end               size, its process, proof
REFUSED         accepting end               proof, sentence
JOB             rank 0, to every worker     eager bytes, ranks of that machine, job secret
PART            a worker, to rank 0         its part, as long as that of every other rank
PEERS           rank 0, to every worker     time to link, address and port of every leader but
                                            rank 0
PARTS           rank 0, to every worker     the part of each rank, in rank order
REFUSED         a rank that gives up, on    sentence; the receiver raises it
                its control link with rank 0
(last five)                                 also a CRC-32 of tag and payload; a frame that has
                                            changed on its way ends the rendezvous
=============== =========================== ====================================================

A proof is an HMAC-SHA256 with the key, over the role of its sender, both nonces and every field. So
a proof can be neither replayed nor reflected. The key of a control link to rank 0 is the token. The
key of every other link is the token and the job secret, so only attached ranks have it. In every
version CHALLENGE keeps its layout, and HANDSHAKE keeps its tag and its first three fields. So each
end can read the version of the other end.

A wait for other ranks lasts ``connect_timeout_ms`` at most. Workers have LINK_SHARE of the time
that is left after the first two phases, to link. Workers wait for rank 0 GRACE_S longer than rank 0
waits for workers, so rank 0, which knows the missing ranks, gives up first.
"""

HANDSHAKE_S = 5.0  # the time that the accepting end gives a whole handshake
CONNECT_S = 5.0  # the time for one address, in which the system sends its first packet three times
CHALLENGE_S = 10.0  # a busy rank with a long queue may be slow, but is not absent
GRACE_S = 1.0
LINK_SHARE = 0.8
MOST_UNAUTHENTICATED = 512  # at one rank, at most; and one more for each rank of the job
