"""Collectives over sockets: a star for small payloads, a ring for large ones."""
