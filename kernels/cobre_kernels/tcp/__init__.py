"""Sockets as a transport between leaders of nodes; ``nodes/verbs.py`` says what a transport does.

The rendezvous has opened two links for every two leaders. The *control link* carries control
messages, rarely (``progress/control.py``). The *data link* carries headers with small payloads
(``exchange.py``, or ``hops.py``), and stripes. Between neighbours on the ring of nodes it also
carries the frames of the ring (``ring.py``) and of the chain (``chain.py``). Each receiver knows
every length before the first byte arrives, so every byte is received into its final address, except
in bundles. ``frame.py`` has the bytes on the wire.

When a process dies, its streams end. So if the control link to a leader ends, and the leader has
not told why, the leader is lost. If a data link ends, or carries another frame than the frame that
is due, its leader is lost too; but first the control link gets a little time to tell more. On the
same machine another process may hold the sockets of a dead leader, so that the streams do not end.
For this case there is a descriptor of the leader's process, which shows that the process has ended.
Outside a verb a leader reads nothing. Messages wait in the sockets until the leader blocks in a
verb, or for SWEEP_EVERY verbs at most.
"""
