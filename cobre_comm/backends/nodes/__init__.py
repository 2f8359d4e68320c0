"""What every backend over several nodes has: the order of nodes, and the memory of the engine.

Importing this imports no transport.
"""
