"""What a rank does in the tests of barrier, of rank and size, and of sequences of collectives."""

import random
import time

import numpy as np
from numba import njit

from cobre_comm import ReduceOp
from cobre_comm.testing.conformance.bodies import cast, gather, reduce
from cobre_comm.testing.conformance.calls import calls
from cobre_comm.testing.conformance.reference import OPS


def barrier_orders_writes(comm, caller, path, rounds):
    """Write before, read after, in memory that is no backend's: a mapped file."""
    words = np.memmap(path, np.int64, "r+", shape=comm.size)
    for number in range(1, rounds + 1):
        words[comm.rank] = 1000 * number + comm.rank
        calls(caller).barrier(comm)
        assert words.tolist() == [1000 * number + r for r in range(comm.size)]
        calls(caller).barrier(comm)


def barrier_orders_files(comm, caller, folder):
    import pathlib

    (pathlib.Path(folder) / str(comm.rank)).touch()
    calls(caller).barrier(comm)
    assert len(list(pathlib.Path(folder).iterdir())) == comm.size


def three_barriers(comm, caller):
    for _ in range(3):
        calls(caller).barrier(comm)


def late_rank_delays_all(comm, caller, late, pause_s):
    barrier = calls(caller).barrier
    barrier(comm)
    if comm.rank == late:
        time.sleep(pause_s)
    entered = time.monotonic()
    barrier(comm)
    return entered, time.monotonic()


@njit(cache=True, nogil=True)
def compiled_identity(comm):
    return comm.rank, comm.size, comm.is_leader


def identity(comm, caller="njit"):
    in_python = (comm.rank, comm.size, comm.is_leader)
    if caller == "njit":
        assert tuple(compiled_identity(comm)) == in_python
    comm.barrier()
    assert (comm.rank, comm.size, comm.is_leader) == in_python
    assert isinstance(comm.rank, int)
    assert isinstance(comm.size, int)
    assert isinstance(comm.is_leader, bool)
    for name in ("rank", "size", "backend", "is_leader"):
        try:
            setattr(comm, name, 5)
        except AttributeError:
            continue
        raise AssertionError(f"{name} can be set")
    return (*in_python, comm.backend)


def four_in_a_row(comm, caller):
    gather.gather_equal(comm, caller, "f8", 10)
    reduce.reduce(comm, caller, "f8", ReduceOp.SUM, 4)
    calls(caller).barrier(comm)
    gather.gather_equal(comm, caller, "f8", 10, seed=1)


def random_operations(comm, caller, seed, count, longest):
    """The same random collectives on every rank, each verified."""
    draw = random.Random(seed)
    for number in range(count):
        kind = draw.choice(["allgatherv", "allreduce", "broadcast", "barrier"])
        dtype = draw.choice(["f8", "i4"])
        length = draw.choice([1, 2, 12, 13, draw.randrange(1, longest)])
        who = draw.choice(["python", "njit"]) if caller == "either" else caller
        if caller == "each its own":
            who = ("python", "njit")[(comm.rank + number) % 2]
        if kind == "allgatherv":
            counts = [draw.randrange(length + 1) for _ in range(comm.size)]
            displs, end = gather.scattered(draw, counts)
            gather.gather(comm, who, dtype, counts, displs, end + draw.randrange(3), seed=number)
        elif kind == "allreduce":
            op, in_place = draw.choice(OPS), draw.random() < 0.5
            reduce.reduce(comm, who, dtype, op, length, number, in_place)
        elif kind == "broadcast":
            cast.cast(comm, who, dtype, length, draw.randrange(comm.size), number)
        else:
            calls(who).barrier(comm)
