"""All code that numba compiles: atomics, waiting, folds and the collectives of each backend.

This package does not depend on ``cobre_comm``. To import it compiles nothing.
"""
