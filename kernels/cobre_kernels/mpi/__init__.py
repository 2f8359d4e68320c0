"""MPI as a transport between the leaders of nodes: ``nodes/verbs.py`` says what it has to do.

Headers and data move by MPI's nonblocking collectives (``verbs.py``). A leader polls them
(``waiting.py``), and control messages are MPI's messages (``control.py``).
"""
