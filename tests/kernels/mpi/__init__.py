"""A leader over an MPI that the test stands in for.

``python -m tests.kernels.mpi`` runs these tests, because they need a process without another MPI.
"""
