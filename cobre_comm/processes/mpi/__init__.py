"""Ranks that an MPI's ``mpiexec`` starts: finds it, serves its shims, removes its leftovers."""
