"""A leader over an MPI for which the test stands in.

``python -m tests.kernels.mpi`` runs these tests, because they need a process without another MPI.
"""
