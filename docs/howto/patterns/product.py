"""Multiply a matrix by a vector, with the rows of the matrix spread over the ranks."""

import numpy as np

from cobre_comm import create_communicator

SIZE = 300
with create_communicator() as comm:
    start, stop = comm.share(SIZE)
    counts, displs = comm.shares(SIZE)
    i, j = np.ogrid[start:stop, :SIZE]
    rows = 1.0 / (1.0 + abs(i - j))  # of this rank alone
    x, product = np.ones(SIZE), np.empty(SIZE)  # on every rank
    for _ in range(20):
        comm.allgatherv(rows @ x, product, counts, displs)
        x = product / np.abs(product).max()
    if comm.rank == 0:
        print(f"the largest eigenvalue is about {product.max():.6f}")
