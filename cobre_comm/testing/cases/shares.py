"""share and shares: equal shares of items, which each rank computes without the other ranks."""

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import QUICK, Case, Together
from cobre_comm.testing.cases.reference import assert_same_bytes, block

WIDTHS = [0, 1, 3]


def shares(comm, caller, n):
    """Check that the shares are those of NumPy's array_split, in which every item is once."""
    made, right = calls(caller, comm.rank), np.array_split(np.arange(n), comm.size)
    start, stop = made.share(comm, n)
    assert (type(start), type(stop)) == (int, int)
    assert list(range(start, stop)) == right[comm.rank].tolist()
    lengths = np.array([part.size for part in right])
    for width in WIDTHS:
        counts, displs = made.shares(comm, n, width)
        assert counts.dtype == displs.dtype == np.int64
        assert counts.tolist() == (width * lengths).tolist()
        assert displs.tolist() == (width * (np.cumsum(lengths) - lengths)).tolist()


def gather_shares(comm, caller, n):
    """Give the result of ``shares`` to an allgatherv, which gathers the shares of all ranks."""
    made, table = calls(caller, comm.rank), block("f8", 0, (n, 3))
    start, stop = made.share(comm, n)
    recv = np.zeros_like(table)
    made.allgatherv(comm, table[start:stop], recv, *made.shares(comm, n, 3))
    assert_same_bytes(recv, table)
    counts, displs = made.shares(comm, n)
    counts[:] = displs[:] = -1  # both arrays belong to the caller, who may overwrite them
    assert made.shares(comm, n)[0].sum() == n


def largest(comm, caller):
    """The largest numbers do not wrap."""
    made, most = calls(caller, comm.rank), 2**62
    start, stop = made.share(comm, np.uint64(most))
    assert comm.size * (stop - start) <= most + comm.size
    for n, width in ((most, 1), (1, most), (2**31, 2**31)):
        counts, displs = made.shares(comm, n, width)
        assert int(displs[-1]) + int(counts[-1]) == most


CASES = [
    Case("shares", shares, {"n": [Together([0, 1, 2, 3, 7, 1000])]}, check=QUICK),
    Case("gathered", gather_shares, {"n": [Together([1, 2, 1000])]}, check=QUICK),
    Case("largest", largest),
]
