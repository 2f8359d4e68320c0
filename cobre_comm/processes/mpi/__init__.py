"""Ranks that an MPI's ``mpiexec`` starts: finding it, its shims, what it leaves behind."""
