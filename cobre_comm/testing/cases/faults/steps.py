"""A sequence of collectives that a fault interrupts; wrong data cannot pass for right data."""

import contextlib
import functools
import itertools
import random
from typing import NamedTuple

import numpy as np

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.calls import calls

LENGTHS = (1, 5, 12, 13, 200, 2000, 20_000)
LONG = 200_000  # elements; rarely used, because many processes share few cores
PERIOD = 8  # each time after this many steps, the ranks agree whether they are done
REGION_ELEMENTS = (10, 5000, 300_000)
_PRIME = 251
LARGE = ("allgatherv", "allreduce", "broadcast")
_PATTERN = 0xA5
_left = []  # outputs of calls that have failed
FOLDS = {ReduceOp.SUM: np.add, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum}  # exact


class Wrong(AssertionError):  # an account has the name of this class as a fact
    """A collective gave wrong data."""


class Step(NamedTuple):
    """One collective that all ranks call."""

    number: int
    operation: str
    length: int = 1
    dtype: str = "f8"
    op: ReduceOp = ReduceOp.SUM
    root: int = 0


def steps(seed, size, large_bytes=0):
    """Yield the steps of a job; every rank gets the same steps.

    If ``large_bytes`` is given, the payloads of some steps have so many bytes.
    """
    draw, draw_large = random.Random(seed), random.Random(f"{seed} large")
    names = ["allgatherv", "allreduce", "broadcast", "barrier", "exact_sum", "region"]
    for number in itertools.count():
        operation = draw.choices(names, (6, 8, 5, 5, 2, 1))[0]
        long = draw.random() < 0.03
        step = Step(
            number,
            operation,
            draw.choice(REGION_ELEMENTS)
            if operation == "region"
            else LONG
            if long
            else draw.choice(LENGTHS),
            draw.choice(["f8", "i8", "f4", "i4"]),
            draw.choice([*FOLDS]),
            draw.randrange(size),
        )
        is_large = large_bytes and operation in LARGE and draw_large.random() < 0.3
        yield enlarged(step, size, large_bytes) if is_large else step


def enlarged(step, size, large_bytes):
    """Return a step with a payload of ``large_bytes``, which the blocks of an allgatherv share.

    But the longest blocks have at least 128 KiB, or ``large_bytes`` if that is less.
    """
    operation = step.operation if step.operation in LARGE else LARGE[step.number % len(LARGE)]
    if operation == "allgatherv":
        large_bytes = max(large_bytes // size, min(large_bytes, 2**17))
    length = large_bytes // np.dtype(step.dtype).itemsize
    return step._replace(operation=operation, length=length)


def data(rank, number, length, dtype="f8"):
    """Return a rank's contribution to a step: small integers, so that sums are exact.

    In float32 the elements are subnormal numbers, which have the bits of these integers.
    """
    integers = (np.arange(_PRIME) * 7 + 31 * rank + 13 * number) % _PRIME + 1
    period = integers.astype("i4").view("f4") if dtype == "f4" else integers.astype(dtype)
    return np.resize(period, length)


def take(comm, step, caller):
    """Take one step, and compare the result with the right result."""
    made, rank, size = calls(caller, comm.rank + step.number), comm.rank, comm.size
    n, number, dtype = step.length, step.number, step.dtype
    if step.operation == "allreduce":
        recv = np.zeros(n, dtype)
        with _watched(recv):
            made.allreduce(comm, data(rank, number, n, dtype), recv, step.op)
        compare(step, recv, folded(step, size))
    elif step.operation == "allgatherv":
        counts = np.array([n * ((r + number) % 3) // 2 for r in range(size)])
        displs = np.cumsum(counts) - counts
        recv = np.zeros(counts.sum(), dtype)
        with _watched(recv):
            made.allgatherv(comm, data(rank, number, counts[rank], dtype), recv, counts, displs)
        blocks = [data(r, number, counts[r], dtype) for r in range(size)]
        compare(step, recv, np.concatenate(blocks))
    elif step.operation == "broadcast":
        buf = data(rank, number, n, dtype)
        with _watched(buf):
            made.broadcast(comm, buf, step.root)
        compare(step, buf, data(step.root, number, n, dtype))
    elif step.operation == "exact_sum":
        came = made.exact_sum(comm, data(rank, number, n))
        compare(step, came, sum(data(r, number, n).sum() for r in range(size)))
    elif step.operation == "region":
        _share(comm, step)
    elif step.operation == "split":
        comm.split(comm.rank % 2).close()
    else:
        made.barrier(comm)


def folded(step, size):
    """Return the right result, folded in integers, so that no floating-point mode matters."""
    dtype = "i4" if step.dtype == "f4" else step.dtype
    inputs = [data(r, step.number, _PRIME, dtype) for r in range(size)]
    return np.resize(functools.reduce(FOLDS[step.op], inputs).view(step.dtype), step.length)


@contextlib.contextmanager
def _watched(output):
    """If a call fails, fill its output with a pattern, at which :func:`look_again` looks."""
    try:
        yield
    except BaseException:
        output.view(np.uint8)[...] = _PATTERN
        _left.append(output)
        raise


def look_again():
    """Tell whether the outputs of calls that have failed are as they were left; forget them."""
    outputs, _left[:] = [*_left], []
    return all((output.view(np.uint8) == _PATTERN).all() for output in outputs)


def _share(comm, step):
    with comm.create_shared_region(step.length) as region:
        if comm.is_leader:
            region.as_mut_slice()[:] = data(0, step.number, step.length)
        region.fence()
        compare(step, region.as_slice(), data(0, step.number, step.length))
        region.fence()


def compare(step, came, expected):
    if np.asarray(came).tobytes() != np.asarray(expected, np.asarray(came).dtype).tobytes():
        raise Wrong(f"{step}: {np.count_nonzero(came != expected)} elements differ")


def agree_that_over(comm, caller, number, is_over):
    """Return, the same on all ranks, whether any rank has worked for long enough."""
    recv = np.zeros(1, np.int64)
    calls(caller, comm.rank + number).allreduce(comm, np.array([int(is_over)]), recv, ReduceOp.MAX)
    return bool(recv[0])
