"""Collectives over sockets: a star for small payloads, a ring for large ones.

``protocol.py`` is the theory of operation, ``progress`` what moves bytes and waits.
"""
