"""``barrier`` in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective import status
from cobre_kernels.collective.calls import BARRIER, Barrier
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.machine.atomics import load_acquire
from cobre_kernels.machine.kernel import run

from cobre_comm.failure import Failure
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import explain, record_of


@collective_method("barrier")
def _barrier(comm):
    is_local = not comm.synchronises

    def barrier(comm):
        record = record_of(comm)
        outcome = status.OK
        if not is_local or load_acquire(record.guard) != IDLE:
            outcome = run(record.collectives[BARRIER].entry, record, Barrier(BARRIER, 0))
        if outcome != status.OK:
            explain(record, BARRIER, outcome, 0)
            raise Failure

    return barrier
