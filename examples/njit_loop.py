"""A communicator as an argument of a compiled function: a whole power iteration under @njit.

Each rank holds some rows of a symmetric matrix. Run it with
``cobre-comm run -n 2 examples/njit_loop.py``; the printed digits do not depend on the number of
ranks.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator

ORDER = 60


@njit(cache=True, nogil=True)
def largest_eigenvalue(comm: Communicator, rows: NDArray[np.float64], iterations: int) -> float:
    """Return the eigenvalue of largest magnitude of a matrix; each rank has some of its rows."""
    counts, displs = comm.shares(rows.shape[1])
    vector = np.ones(rows.shape[1])
    mine = np.empty(rows.shape[0])
    length = 0.0
    for _ in range(iterations):
        for i in range(rows.shape[0]):
            mine[i] = np.sum(rows[i] * vector)
        comm.allgatherv(mine, vector, counts, displs)
        length = np.sqrt(np.sum(vector * vector))
        vector /= length
    return length


def main() -> None:
    """Give each rank some rows, iterate, print the eigenvalue on rank 0."""
    with create_communicator() as comm:
        start, stop = comm.share(ORDER)
        i, j = np.arange(start, stop, dtype=np.float64), np.arange(ORDER)
        rows = 1.0 / (1.0 + i[:, None] + j[None, :])  # a Hilbert matrix
        value = largest_eigenvalue(comm, rows, 50)
        if comm.rank == 0:
            print(f"{value:.15f}")


if __name__ == "__main__":
    main()
