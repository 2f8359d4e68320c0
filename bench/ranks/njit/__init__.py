"""Loops in compiled code: ours, numba-mpi's, and the least that two cores need to meet."""
