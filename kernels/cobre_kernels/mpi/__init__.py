"""Collectives over several nodes: shared memory within a node, MPI between leaders.

``round.py`` has the protocol and its states. One file holds the body of each collective.
"""
