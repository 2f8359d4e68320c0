"""Same bits: an allreduce gives the same bits for all chunk sizes, delays and backends."""

import hashlib
import random
import time

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case
from cobre_comm.testing.cases.reference import COMPLEX, FLOATS, fold, numbers, ops_of

LONGEST_PAUSE_S = 0.002


def plan(seed, longest):
    """Return dtype, op and length of a random allreduce, the same on all ranks."""
    draw = random.Random(seed)
    dtype = draw.choice([*FLOATS, *FLOATS, *COMPLEX, "i8", "u2"])
    op = draw.choice(ops_of(dtype))
    return dtype, op, draw.choice([1, 3, 12, 13, draw.randrange(1, longest)])


def one_nan(values):
    """Return an array's bytes with all NaNs made equal, because no NaN's payload is promised."""
    if values.dtype.kind in "fc":
        values = values.view(f"f{values.itemsize // (2 if values.dtype.kind == 'c' else 1)}")
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return values.tobytes()


def digest_of(size, seeds, longest):
    """Return the digest of :func:`reduce_all`, computed by plain NumPy."""
    digest = hashlib.sha256()
    for seed in seeds:
        dtype, op, count = plan(seed, longest)
        digest.update(one_nan(fold(op, [numbers(dtype, r, count, seed) for r in range(size)])))
    return digest.hexdigest()


def reduce_all(comm, caller, seeds, longest):
    """Reduce random arrays, each rank after random pauses of its own; return a digest of all."""
    pauses = random.Random(1000 * comm.rank + sum(seeds))
    digest = hashlib.sha256()
    for seed in seeds:
        dtype, op, count = plan(seed, longest)
        send = numbers(dtype, comm.rank, count, seed)
        recv = np.empty_like(send)
        if pauses.random() < 0.5:
            time.sleep(pauses.random() * LONGEST_PAUSE_S)
        calls(caller, comm.rank).allreduce(comm, send, recv, op)
        digest.update(one_nan(recv))
    return digest.hexdigest()


def are_those_of_numpy(ran):
    """Check that every digest is that of plain NumPy, which has no backend, callers or chunks."""
    right = digest_of(ran.size, *ran.cell.arguments)
    wrong = [rank for rank, digest in enumerate(ran.values) if digest != right]
    assert not wrong, f"ranks {wrong} have other bits than plain NumPy"


CASES = [
    Case(
        "allreduce", reduce_all, {"seeds": [range(40)], "longest": [6000]}, callers=EVERY,
        buffers=("default", "small", "smallest"), expect=are_those_of_numpy, column="bits",
        check=QUICK,
    ),
]  # fmt: skip
