"""Ranks over MPI: finds an MPI's ``mpiexec``, serves its shims, removes files that MPI leaves."""
