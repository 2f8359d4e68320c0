"""The cost of noting every call: entries that note it, beside entries that do not.

    python -m bench.studies journal

The entries without notes are those of this file: the same bodies, nothing noted at their beginning
and end. A compiled loop runs blocks of both by turns, on two ranks over shared memory. Prints the
median nanoseconds of a call over blocks, and the difference.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from cobre_kernels.collective import checks, dtypes
from cobre_kernels.collective.calls import ALLREDUCE, BARRIER, Allreduce, Barrier, signature_of
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.guard import acquire, release
from cobre_kernels.collective.reduction import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.routine import routine
from numba import njit

from cobre_comm.jit.records import record_of
from cobre_comm.testing import run_ranks

RANKS = 2
CALLS = 2000  # of a block
BLOCKS = 300
DEADLINE_S = 160
VALUES = 4  # 32 bytes


@routine
def unnoted(comm, signature, compared, count):
    """Begin a call as an entry does, but for its note."""
    comm.signature = signature
    comm.compared = compared
    comm.count = count
    comm.thread = 0
    comm.came = comm.unnoted = 0


@kernel(COMM, Barrier)
def barrier_without(comm, call):
    """Run a barrier without noting it."""
    outcome = acquire(comm)
    if outcome == OK:
        unnoted(comm, call.signature, call.compared, 0)
        outcome = run(comm.collectives[BARRIER].body, comm, call)
        release(comm)
    return outcome


@kernel(COMM, Allreduce)
def allreduce_without(comm, call):
    """Run an allreduce without noting it."""
    outcome = acquire(comm)
    if outcome == OK:
        outcome = checks.check_allreduce(call)
        signature = signature_of(ALLREDUCE, call.dtype, call.op)
        unnoted(comm, signature, call.send_count * call.itemsize, call.send_count)
        outcome = run(comm.collectives[ALLREDUCE].body, comm, call)
        release(comm)
    return outcome


@njit
def barriers(comm, entry, count):
    """Call the entry at an address again and again."""
    record = record_of(comm)
    for _ in range(count):
        run(entry, record, Barrier(BARRIER, 0))


@njit
def allreduces(comm, entry, count, send, recv):
    """Call the entry at an address again and again, with 32 bytes."""
    record = record_of(comm)
    for _ in range(count):
        call = Allreduce(
            send.ctypes.data, VALUES, recv.ctypes.data, VALUES, 8, dtypes.FLOAT64, fold.SUM
        )
        run(entry, record, call)


def measure(comm):
    """Return the median nanoseconds of a call, with its note and without, of each operation."""
    record = comm._comm
    arrays = np.ones(VALUES), np.zeros(VALUES)
    ways = {
        ("barrier", "with"): (barriers, record.collectives[BARRIER].entry, ()),
        ("barrier", "without"): (barriers, barrier_without.address, ()),
        ("allreduce", "with"): (allreduces, record.collectives[ALLREDUCE].entry, arrays),
        ("allreduce", "without"): (allreduces, allreduce_without.address, arrays),
    }
    taken = {way: [] for way in ways}
    for block in range(BLOCKS + 1):
        for way, (loop, entry, values) in ways.items():
            comm.barrier()
            start = time.perf_counter()
            loop(comm, entry, CALLS, *values)
            if block > 0:  # the first one compiles
                taken[way].append((time.perf_counter() - start) / CALLS * 1e9)
    return {way: median(times) for way, times in taken.items()}


def main() -> None:
    """Measure, and print a table."""
    print(f"{'operation':12}{'with, ns':>12}{'without, ns':>14}{'more, ns':>12}")
    found = run_ranks("shm", RANKS, measure, timeout_s=DEADLINE_S)[0]
    for operation in ("barrier", "allreduce"):
        noted, plain = found[operation, "with"], found[operation, "without"]
        print(f"{operation:12}{noted:12.1f}{plain:14.1f}{noted - plain:12.1f}")
