"""All code that numba compiles: atomics, waiting, folds and the collectives of each backend.

Knows nothing of ``cobre_comm``; importing it compiles nothing.
"""
