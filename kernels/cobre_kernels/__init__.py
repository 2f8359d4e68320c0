"""All code that numba compiles: atomics, waiting, folds and the collectives of each backend.

This package knows nothing of ``cobre_comm``, and its import compiles nothing.
"""
