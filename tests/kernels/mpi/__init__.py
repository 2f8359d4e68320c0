"""A leader over an MPI that the test itself is: ``python -m tests.kernels.mpi`` runs the tests.

They need a process that has no other MPI.
"""
