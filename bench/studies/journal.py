"""The cost of noting every call, also in a phase: entries with notes beside entries without.

    python -m bench.studies journal

The entries without notes are in this file: they run the same bodies, but note nothing at the
beginning and the end of a call. Compiled loops run blocks of both kinds in turn, on two ranks over
shared memory, and blocks on a communicator that is in a phase. Prints the median nanoseconds of a
call over blocks, and what notes and phases add; then those of ``enter_phase`` and of a ``with``
block.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
from cobre_kernels.collective import checks, dtypes
from cobre_kernels.collective.calls import ALLREDUCE, BARRIER, Allreduce, Barrier, signature_of
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.guard import acquire, release
from cobre_kernels.collective.reduction import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from numba import njit

from bench.ranks.timing import in_turn, timed
from cobre_comm.jit.fields import record_of
from cobre_comm.testing import run_ranks

RANKS = 2
CALLS = 2000  # calls of a block
BLOCKS = 300
DEADLINE_S = 160
VALUES = 4  # these numbers have 32 bytes
NAME = "study"


@routine
def unnoted(comm, signature, compared, count):
    """Begin a call as an entry does, but do not note the call."""
    comm.signature = signature
    comm.compared = compared
    comm.count = count
    comm.thread = 0
    comm.came = comm.unnoted = 0


@kernel(COMM, Barrier)
def barrier_without(comm, call):
    """Run a barrier that is not noted."""
    outcome = acquire(comm)
    if outcome == OK:
        unnoted(comm, call.signature, call.compared, 0)
        outcome = run(comm.collectives[BARRIER].body, comm, call)
        release(comm)
    return outcome


@kernel(COMM, Allreduce)
def allreduce_without(comm, call):
    """Run an allreduce that is not noted."""
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
    """Call the entry at an address, again and again."""
    record = record_of(comm)
    for _ in range(count):
        run(entry, record, Barrier(BARRIER, 0))


@njit
def allreduces(comm, entry, count, send, recv):
    """Call the entry at an address with 32 bytes, again and again."""
    record = record_of(comm)
    for _ in range(count):
        call = Allreduce(
            send.ctypes.data, VALUES, recv.ctypes.data, VALUES, 8, dtypes.FLOAT64, fold.SUM
        )
        run(entry, record, call)


@njit
def enters(comm, number, count):
    """Enter a phase again and again."""
    for _ in range(count):
        comm.enter_phase(number)


def enters_from_python(comm, number, count):
    for _ in range(count):
        comm.enter_phase(number)


def with_blocks(comm, number, count):
    phase = comm.phase(NAME)
    for _ in range(count):
        with phase:
            pass


def measure(comm):
    """Return the median nanoseconds of a call, by what is called and in which way."""
    phased = comm.split(0)
    number = phased.phase_number(NAME)
    phased.enter_phase(number)
    barrier, allreduce = (comm._comm.collectives[each].entry for each in (BARRIER, ALLREDUCE))
    arrays = np.ones(VALUES), np.zeros(VALUES)
    ways = {
        ("barrier", "with"): (barriers, comm, barrier, CALLS),
        ("barrier", "without"): (barriers, comm, barrier_without.address, CALLS),
        ("barrier", "phase"): (barriers, phased, barrier, CALLS),
        ("allreduce", "with"): (allreduces, comm, allreduce, CALLS, *arrays),
        ("allreduce", "without"): (allreduces, comm, allreduce_without.address, CALLS, *arrays),
        ("allreduce", "phase"): (allreduces, phased, allreduce, CALLS, *arrays),
        ("enter_phase", "compiled"): (enters, phased, number, CALLS),
        ("enter_phase", "Python"): (enters_from_python, phased, number, CALLS),
        ("with block", "Python"): (with_blocks, phased, number, CALLS),
    }

    def seconds(loop, *values):
        comm.barrier()
        return timed(partial(loop, *values))

    taken = in_turn({way: partial(seconds, *call) for way, call in ways.items()}, BLOCKS)
    return {way: median(times) / CALLS * 1e9 for way, times in taken.items()}


def main() -> None:
    """Measure, and print a table."""
    columns = f"{'with, ns':>12}{'without, ns':>14}{'more, ns':>12}"
    print(f"{'operation':12}{columns}{'in a phase, ns':>18}{'more, ns':>12}")
    found = run_ranks("shm", RANKS, measure, timeout_s=DEADLINE_S)[0]
    for operation in ("barrier", "allreduce"):
        noted, plain, phased = (found[operation, how] for how in ("with", "without", "phase"))
        more = f"{noted:12.1f}{plain:14.1f}{noted - plain:12.1f}"
        print(f"{operation:12}{more}{phased:18.1f}{phased - noted:12.1f}")
    for what, where in (
        ("enter_phase", "compiled"),
        ("enter_phase", "Python"),
        ("with block", "Python"),
    ):
        print(f"{what}, {where}: {found[what, where]:.0f} ns")
