"""The verbs of the nodes over sockets: what leaders of nodes send each other.

``protocol.py`` is the theory of operation, ``progress`` what moves bytes and waits.
"""
