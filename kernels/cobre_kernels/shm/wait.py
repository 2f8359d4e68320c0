"""How a rank waits for another one in shared memory.

A wait ends in success, with a status and failure records that name the missing ranks, or by a
signal handler that has raised or forked. ``collective/waiting/patience.py`` has the policy. This
file has the look at a flag, the sleep by futex, and how a rank finds out which ranks are missing.
"""

from cobre_kernels.collective.comm import COMM, DIED, GAVE_UP, LATE, LEFT, PRESENT, RANKS
from cobre_kernels.collective.seeing.journal import note_arrival
from cobre_kernels.collective.status import LOST_PEER, OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import (
    Look,
    Patience,
    begin_wait,
    end_wait,
    look_around_soon,
    mark_nobody,
    nap,
    pause,
    spin_again,
    waited_ns,
    write_late_line,
)
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import (
    compare_exchange,
    cpu_pause,
    fence_seq_cst,
    fetch_add,
    load_acquire,
    load_relaxed,
    load_seq_cst,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import HAS_CLOSED, HAS_FAILED, MEMBER

FEW_LOOKS = 8  # a wait of so few looks counts as transfer of a cache line, not as waiting
SPINS_PER_CLOCK = 64  # looks between two readings of the clock while spinning
LINES_BITS = 6  # low bits of ``late_told``, for the number of a line; the others hold the step


@routine
def cell_of(comm, rank, generation):
    """Return a rank's cell for a generation."""
    return comm.node.control.blocks[rank].cells[generation & 1]


@routine
def has_arrived(comm, rank, generation):
    """Tell whether a rank has entered the step (acquire: then its cell and slot can be read)."""
    return load_acquire(cell_of(comm, rank, generation).arrived) == generation


@routine
def wait_for(comm, rank, generation):
    """Wait until ``rank`` has entered step ``generation``; return a status."""
    arrived = cell_of(comm, rank, generation).arrived
    for _ in range(FEW_LOOKS):
        if load_acquire(arrived) == generation:
            return OK
        cpu_pause()
    outcome = _wait_long(comm, rank, generation)
    note_arrival(comm, comm.node.names[rank])
    return outcome


@routine
def _wait_long(comm, rank, generation):
    wait, arrived = comm.wait, cell_of(comm, rank, generation).arrived
    if wait.generation != generation:  # one timeout per step covers all ranks awaited
        wait.generation = generation
        begin_wait(comm, RANKS)
    spin_again(comm)
    wait.looked_ns = 0
    wait.node_rank = rank
    wait.awaited = comm.node.names[rank]
    outcome = OK
    while outcome == OK and load_acquire(arrived) != generation:
        outcome = pause(comm, SPINS_PER_CLOCK)
    end_wait(comm, outcome)
    return outcome


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Sleep until the rank arrives or fails, a signal arrives, or the time is over; or nap."""
    if comm.portable != 0:
        nap(comm, call.longest_ns)
    else:
        _sleep(comm, comm.wait.node_rank, comm.wait.generation, call.longest_ns)
        look_around_soon(comm)
    return OK


@routine
def _sleep(comm, rank, generation, timeout_ns):
    """Sleep until a rank's ``arrived`` may have changed.

    The increment of ``sleepers`` and the load of ``arrived`` here, and the store of ``arrived``
    and the load of ``sleepers`` in ``shm/step.publish``, are sequentially consistent. So at least
    one of the two ranks sees the other, and no wake-up is lost.
    """
    sleepers = comm.node.control.blocks[rank].sleepers
    arrived = cell_of(comm, rank, generation).arrived
    fetch_add(sleepers, 1)
    seen = load_seq_cst(arrived)
    if seen != generation:
        libc.futex_wait(arrived, seen, timeout_ns, comm.scratch)
    fetch_add(sleepers, -1)


@kernel(COMM, Look)
def look_around_kernel(comm, call):
    """Find out which ranks are lost, or late."""
    node, generation = comm.node, comm.wait.generation
    lost = False
    late = False
    for rank in range(node.size):
        reason = PRESENT
        if not has_arrived(comm, rank, generation):
            reason = _why_missing(comm, rank, generation)
        if reason == PRESENT and call.is_overdue != 0:
            if not has_arrived(comm, rank, generation):
                reason = LATE
                late = True
        elif reason != PRESENT:
            lost = True
        if reason != PRESENT:
            comm.failures[node.names[rank]].reason = reason
    if lost:
        return LOST_PEER
    if late:
        return TIMED_OUT
    if call.is_line_due != 0:
        _tell_of_late(comm, generation)
    return OK


@routine
def _tell_of_late(comm, generation):
    """Have a line name the late ranks, unless another rank of the node has done so."""
    node, line = comm.node, generation << LINES_BITS | comm.wait.lines
    if _claim(comm, load_relaxed(node.control.late_told), line):
        mark_nobody(comm)
        for rank in range(node.size):
            if not has_arrived(comm, rank, generation):
                comm.late[node.names[rank]] = waited_ns(comm)
        write_late_line(comm)
    comm.wait.lines += 1


@routine
def _claim(comm, told, line):
    """Claim a line on late ranks; tell whether this rank has got it.

    ``told`` is the last line that this rank has seen claimed. The exchange pairs with the load
    in _tell_of_late, and orders nothing else: of ranks that claim one line, at most one gets it.
    """
    while told < line:
        found = compare_exchange(comm.node.control.late_told, told, line)
        if found == told:
            return True
        told = found
    return False


@routine
def _why_missing(comm, rank, generation):
    """Return DIED, LEFT or GAVE_UP, or PRESENT if the rank may still arrive."""
    reason = PRESENT
    condition = load_acquire(comm.node.control.blocks[rank].condition)
    if condition != MEMBER:
        reason = _reason_of(condition)
    elif not libc.lock_is_held(comm.node.liveness_fd, rank, comm.scratch):
        # The rank stored its condition before it lost the lock, so this load finds the last value.
        reason = _reason_of(load_acquire(comm.node.control.blocks[rank].condition))
    # The rank may have arrived just before it ended; then it is not missing.
    if reason != PRESENT and has_arrived(comm, rank, generation):
        return PRESENT
    return reason


@routine
def find_failed(comm):
    """Return LOST_PEER if another rank has failed, even one that is in the present step; else OK.

    A rank that has read memory of the other ranks calls this: the program of a rank that has failed
    may have changed the memory before it was read.
    """
    node, outcome = comm.node, OK
    fence_seq_cst()  # the memory was read before the next load
    for rank in range(node.size):
        # Acquire: pairs with the store in step.announce, after which that rank's call returns.
        condition = load_acquire(node.control.blocks[rank].condition)
        if condition != MEMBER:
            comm.failures[node.names[rank]].reason = _reason_of(condition)
            outcome = LOST_PEER
    return outcome


@routine
def _reason_of(condition):
    """Return why a rank that has ended takes no part, by its last condition."""
    if condition == HAS_CLOSED:
        return LEFT
    return GAVE_UP if condition == HAS_FAILED else DIED
