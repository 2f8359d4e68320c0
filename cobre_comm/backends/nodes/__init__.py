"""The common part of backends over several nodes: node order, configurations, private memory.

Importing this package imports no transport.
"""
