"""MPI as a transport between the leaders of nodes; ``nodes/verbs.py`` says what a transport does.

Headers and data move by MPI's nonblocking collectives (``verbs.py``), which a leader polls
(``waiting.py``). Control messages are point-to-point messages of MPI (``control.py``).
"""
