"""``barrier`` in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective.calls import BARRIER, Barrier
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.machine.atomics import load_acquire

from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import entering, record_of

enter = entering(BARRIER)


@collective_method("barrier")
def _barrier(comm):
    is_local = not comm.synchronises

    def barrier(comm):
        record = record_of(comm)
        if not is_local or load_acquire(record.guard) != IDLE:
            enter(record, Barrier(BARRIER, 0))

    return barrier
