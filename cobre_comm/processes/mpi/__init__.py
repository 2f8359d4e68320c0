"""Ranks that an MPI's ``mpiexec`` starts: find it, serve its shims, remove its leftovers."""
