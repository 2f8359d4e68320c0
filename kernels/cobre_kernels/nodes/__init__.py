"""Collectives over several nodes: shared memory within a node, a transport between leaders.

``round.py`` has the steps of a collective, ``protocol.py`` the protocol among leaders, ``verbs.py``
what a transport does. The body of each collective has a file of its own.
"""
