"""How a rank waits for another one in shared memory: spin, yield, block.

A wait ends in success, in a status that names the missing ranks (their failure records), or in
what a signal handler did. After a first short spin it does not hold the GIL and looks around every
tick.
"""

from cobre_kernels.collective.comm import DIED, GAVE_UP, LATE, LEFT, PRESENT
from cobre_kernels.collective.seeing.journal import note_arrival, note_no_wait, note_slow_wait
from cobre_kernels.collective.status import LOST_PEER, OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import (
    FIRST_NAP_NS,
    LONGEST_NAP_NS,
    TICK_NS,
    begin_wait,
    first_spin_ns,
    is_line_due,
    is_overdue,
    read_clock,
    remaining_ns,
    run_handlers,
    spins_on,
    write_late_line,
)
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import (
    compare_exchange,
    cpu_pause,
    fetch_add,
    load_acquire,
    load_relaxed,
    load_seq_cst,
)
from cobre_kernels.machine.routine import routine
from cobre_kernels.shm.control import CLOSED, FAILED, MEMBER

FEW_LOOKS = 8  # a wait as short counts as the transfer of a cache line, not as waiting for a rank
SPINS_PER_CLOCK = 64  # looks between two readings of the clock while spinning
YIELDS_PER_CLOCK = 16
LINES_BITS = 6  # of ``late_told``, below the step: each line of a wait takes twice as long


@routine
def cell_of(comm, rank, generation):
    """Return a rank's cell for a generation."""
    return comm.control.blocks[rank].cells[generation & 1]


@routine
def has_arrived(comm, rank, generation):
    """Tell whether a rank has entered the step (acquire: what it published can then be read)."""
    return load_acquire(cell_of(comm, rank, generation).arrived) == generation


@routine
def wait_for(comm, rank, generation):
    """Wait until ``rank`` has entered step ``generation``; return a status."""
    arrived = cell_of(comm, rank, generation).arrived
    for _ in range(FEW_LOOKS):
        if load_acquire(arrived) == generation:
            return OK
        cpu_pause()
    status = _wait_long(comm, rank, generation)
    note_arrival(comm, rank)
    return status


@routine
def _wait_long(comm, rank, generation):
    arrived = cell_of(comm, rank, generation).arrived
    if comm.spin_ns > 0 and _spin(arrived, generation, first_spin_ns(comm)):
        return OK
    if _yield(arrived, generation, comm.yield_ns):
        return OK
    note_slow_wait(comm, comm.names[rank])
    thread = libc.release_gil()
    status = _block(comm, rank, generation)
    libc.regain_gil(thread)
    if status == OK:
        note_no_wait(comm)
    return status


@routine
def _spin(arrived, generation, duration_ns):
    deadline = 0
    while True:
        for _ in range(SPINS_PER_CLOCK):
            if load_acquire(arrived) == generation:
                return True
            cpu_pause()
        now = libc.monotonic_ns()
        if deadline == 0:
            deadline = now + duration_ns
        elif now >= deadline:
            return False


@routine
def _yield(arrived, generation, duration_ns):
    deadline = 0
    while True:
        for _ in range(YIELDS_PER_CLOCK):
            libc.sched_yield()
            if load_acquire(arrived) == generation:
                return True
        now = libc.monotonic_ns()
        if deadline == 0:
            deadline = now + duration_ns
        elif now >= deadline:
            return False


@routine
def _block(comm, rank, generation):
    if comm.wait_generation != generation:  # one timeout per step covers all ranks awaited
        comm.wait_generation = generation
        begin_wait(comm)
    nap_ns = FIRST_NAP_NS
    looked = comm.clock_ns
    while True:
        patience_ns = remaining_ns(comm)
        if spins_on(comm):
            _spin(cell_of(comm, rank, generation).arrived, generation, patience_ns)
        elif comm.portable != 0:
            libc.sleep_ns(min(nap_ns, patience_ns), comm.scratch)
            nap_ns = min(2 * nap_ns, LONGEST_NAP_NS)
        else:
            _sleep(comm, rank, generation, patience_ns)
            looked = 0  # a signal, a failing peer or the tick has ended the sleep: look around
        if has_arrived(comm, rank, generation):
            return OK
        read_clock(comm)
        overdue = is_overdue(comm)
        if overdue or comm.clock_ns - looked >= TICK_NS:
            looked = comm.clock_ns
            status = _look_around(comm, generation, overdue)
            if status != OK:
                comm.waited_ns = comm.clock_ns - comm.wait_began_ns
                return status


@routine
def _sleep(comm, rank, generation, timeout_ns):
    """Sleep on a rank's ``arrived``.

    The increment of ``sleepers`` and the load of ``arrived`` here, and the store of ``arrived``
    and the load of ``sleepers`` in ``shm/step.publish``, are sequentially consistent: at least one
    side sees the other, so no wake-up is lost.
    """
    sleepers = comm.control.blocks[rank].sleepers
    arrived = cell_of(comm, rank, generation).arrived
    fetch_add(sleepers, 1)
    seen = load_seq_cst(arrived)
    if seen != generation:
        libc.futex_wait(arrived, seen, timeout_ns, comm.scratch)
    fetch_add(sleepers, -1)


@routine
def _look_around(comm, generation, overdue):
    outcome = run_handlers(comm)
    if outcome != OK:
        return outcome
    lost = False
    late = False
    for rank in range(comm.size):
        reason = PRESENT
        if not has_arrived(comm, rank, generation):
            reason = _why_missing(comm, rank, generation)
        if reason == PRESENT and overdue:
            if not has_arrived(comm, rank, generation):
                reason = LATE
                late = True
        elif reason != PRESENT:
            lost = True
        comm.failures[rank].reason = reason
    if lost:
        return LOST_PEER
    if late:
        return TIMED_OUT
    if is_line_due(comm):
        _tell_of_late(comm, generation)
    return OK


@routine
def _tell_of_late(comm, generation):
    """Have a line tell who is missing, unless another rank of the node does."""
    line = generation << LINES_BITS | comm.late_lines
    if _claim(comm, load_relaxed(comm.control.late_told), line):
        waited_ns = comm.clock_ns - comm.wait_began_ns
        for rank in range(comm.size):
            comm.late[rank] = 0 if has_arrived(comm, rank, generation) else waited_ns
        write_late_line(comm)
    comm.late_lines += 1


@routine
def _claim(comm, told, line):
    """Claim a line, where ``told`` was the last one; tell whether the node had not claimed it.

    The exchange pairs with the load in _tell_of_late, and orders nothing else: of ranks that claim
    one line, one finds that it was the first.
    """
    while told < line:
        found = compare_exchange(comm.control.late_told, told, line)
        if found == told:
            return True
        told = found
    return False


@routine
def _why_missing(comm, rank, generation):
    """Return DIED, LEFT or GAVE_UP, or PRESENT if the rank may still come."""
    reason = PRESENT
    condition = load_acquire(comm.control.blocks[rank].condition)
    if condition != MEMBER:
        reason = _reason_of(condition)
    elif not libc.lock_is_held(comm.liveness_fd, rank, comm.scratch):
        # What it announced before it gave up the lock can be read now, if not before.
        reason = _reason_of(load_acquire(comm.control.blocks[rank].condition))
    # It may have arrived just before it ended; then it is not missing.
    if reason != PRESENT and has_arrived(comm, rank, generation):
        return PRESENT
    return reason


@routine
def _reason_of(condition):
    """Return why a rank that has ended takes no part: its last words, or none."""
    if condition == CLOSED:
        return LEFT
    return GAVE_UP if condition == FAILED else DIED
