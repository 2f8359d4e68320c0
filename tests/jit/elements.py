"""Collectives that fail in ``@vectorize`` and ``@guvectorize``: their loops go on afterwards."""

import numpy as np
from numba import guvectorize, types, vectorize

from cobre_comm import CollectiveFailed, InvalidRoot
from cobre_comm.testing.cases.raised import met

NUMBER, ROW = types.float64, types.float64[:]
EXPECTED = {
    "vectorize": [InvalidRoot] * 4,
    "guvectorize": [InvalidRoot] * 3,
    "caught in the last element": InvalidRoot,
    "broken by the first element": CollectiveFailed,
}


def errors(comm):
    """Return the class of what reaches Python, for one element and for more."""

    @vectorize([NUMBER(NUMBER)])
    def each(x):
        comm.broadcast(np.ones(2), 99)
        return x

    @guvectorize([types.void(ROW, ROW)], "(n)->(n)")
    def row(x, y):
        comm.broadcast(np.ones(2), 99)

    @vectorize([NUMBER(NUMBER)])
    def caught_later(x):
        if x == 0.0:
            comm.broadcast(np.ones(2), 99)
        try:
            comm.allreduce(np.ones(2), np.ones(3))
        except Exception:
            return x
        return x

    return {
        "vectorize": [type(met(each, np.ones(count))) for count in range(1, 5)],
        "guvectorize": [type(met(row, np.ones((count, 2)))) for count in range(1, 4)],
        "caught in the last element": type(met(caught_later, np.arange(2.0))),
        "broken by the first element": type(broken(comm.split_local())),
    }


def broken(own):
    """Return what a rank meets that its peer has left."""

    @vectorize([NUMBER(NUMBER)])
    def meet(x):
        own.barrier()
        return x

    if own.rank == 1:
        own.close()
        return CollectiveFailed("barrier")
    return met(meet, np.ones(3))
