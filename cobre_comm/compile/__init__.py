"""Filling numba's cache before ranks need it: ``cobre-comm compile``, and each launcher."""
