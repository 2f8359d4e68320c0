"""Collectives over several nodes: shared memory within a node, a transport between leaders.

``round.py`` has the protocol and its states, ``verbs.py`` what a transport does. One file holds the
body of each collective.
"""
