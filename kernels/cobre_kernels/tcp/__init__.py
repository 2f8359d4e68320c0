"""Sockets as a transport between the leaders of nodes: ``nodes/verbs.py`` says what it has to do.

The rendezvous has opened two links for every two leaders. The *control link* carries control
messages, rarely (``progress/control.py``). The *data link* carries headers with small payloads, and
stripes (``exchange.py``); between neighbours on the ring of nodes also what goes around it
(``ring.py``), or along the chain (``chain.py``). Each receiver knows every length before the first
byte comes, so every byte is received into its final address. ``frame.py`` has the bytes on the
wire.

How a link ends, and what that means: a dead process ends its streams. A leader whose control link
ends is lost, unless it has told why. If a data link ends, or carries a frame that is not the one
due, its leader is lost too, once its control link has had a little time to tell more. Where another
process may hold the sockets of a dead leader, on the same machine, a descriptor of its process
tells that it has ended. Between two verbs a leader reads nothing: what has come waits in the
sockets until it blocks in a verb, or for SWEEP_EVERY verbs at most.
"""
