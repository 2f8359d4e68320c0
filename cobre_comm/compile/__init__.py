"""Fill numba's cache before ranks need it, for ``cobre-comm compile`` and each launcher."""
