"""MPI as a transport between the leaders of nodes: ``nodes/verbs.py`` says what it has to do.

A leader exchanges headers by polling (``exchange.py``), and hears failures by messages
(``messages.py``). Data moves by MPI's blocking collectives (``verbs.py``).
"""
