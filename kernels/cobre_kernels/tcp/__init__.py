"""Sockets as a transport between the leaders of nodes; ``nodes/verbs.py`` has its duties.

The rendezvous has opened two links for every two leaders. The *control link* carries control
messages, rarely (``progress/control.py``). The *data link* carries headers with small payloads, and
stripes (``exchange.py``). Between neighbours on the ring of nodes it also carries the frames of the
ring (``ring.py``) and of the chain (``chain.py``). Each receiver knows every length before the
first byte arrives, so every byte is received into its final address. ``frame.py`` has the bytes on
the wire.

A dead process ends its streams. A leader whose control link ends is therefore lost, unless it has
told why. If a data link ends, or carries another frame than the one due, its leader is lost too.
Before that, its control link has a little time to tell more. On the same machine another process
may hold the sockets of a dead leader. So a descriptor of the leader's process shows its end there.
Outside a verb a leader reads nothing: messages wait in the sockets until it blocks in a verb, or
for SWEEP_EVERY verbs at most.
"""
