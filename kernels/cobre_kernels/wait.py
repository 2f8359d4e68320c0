"""The waiting loop of shared memory: spin, yield, block; with deadline, liveness and signals.

A wait ends in success, in a status that names the missing ranks (their records in the state), or
in INTERRUPTED. While it blocks it does not hold the GIL, and it looks around every TICK_NS.
"""

from cobre_kernels import layout, libc
from cobre_kernels.atomics import (
    cpu_pause,
    fetch_add,
    load_acquire,
    load_seq_cst,
    peek,
    poke,
)
from cobre_kernels.routine import routine
from cobre_kernels.status import INTERRUPTED, LOST_PEER, OK, TIMED_OUT

TICK_NS = 50_000_000  # how often a blocked wait asks for signals and for dead peers
SPINS_PER_CLOCK = 64  # looks between two readings of the clock while spinning
YIELDS_PER_CLOCK = 16
FIRST_NAP_NS = 20_000  # the portable path sleeps this long, then twice that, ...
LONGEST_NAP_NS = 1_000_000


@routine
def rank_block(state, rank):
    """Address of a rank's block in the shared control region."""
    return peek(state + layout.CONTROL) + layout.HEADER_BYTES + rank * layout.RANK_BYTES


@routine
def cell_of(state, rank, generation):
    """Address of a rank's cell for a generation."""
    parity = generation & 1
    return rank_block(state, rank) + layout.CELLS + parity * layout.CELL_BYTES


@routine
def has_arrived(state, rank, generation):
    """Whether a rank has entered the step (acquire: what it published can then be read)."""
    return load_acquire(cell_of(state, rank, generation) + layout.ARRIVED) == generation


@routine
def wait_for(state, rank, generation):
    """Wait until ``rank`` has entered step ``generation``; return a status."""
    word = cell_of(state, rank, generation) + layout.ARRIVED
    if _spin(word, generation, peek(state + layout.SPIN_NS)):
        return OK
    if _yield(word, generation, peek(state + layout.YIELD_NS)):
        return OK
    thread = libc.release_gil()
    status = _block(state, rank, generation)
    libc.regain_gil(thread)
    return status


@routine
def _spin(word, generation, duration_ns):
    deadline = 0
    while True:
        for _ in range(SPINS_PER_CLOCK if duration_ns > 0 else 4):
            if load_acquire(word) == generation:
                return True
            cpu_pause()
        if duration_ns <= 0:
            return False
        now = libc.monotonic_ns()
        if deadline == 0:
            deadline = now + duration_ns
        elif now >= deadline:
            return False


@routine
def _yield(word, generation, duration_ns):
    deadline = 0
    while True:
        for _ in range(YIELDS_PER_CLOCK):
            libc.sched_yield()
            if load_acquire(word) == generation:
                return True
        now = libc.monotonic_ns()
        if deadline == 0:
            deadline = now + duration_ns
        elif now >= deadline:
            return False


@routine
def _block(state, rank, generation):
    began = _step_began(state, generation)
    timeout_ns = peek(state + layout.TIMEOUT_NS)
    nap_ns = FIRST_NAP_NS
    looked = began
    while True:
        remaining_ns = TICK_NS
        if timeout_ns > 0:
            remaining_ns = min(TICK_NS, max(began + timeout_ns - libc.monotonic_ns(), 1))
        if peek(state + layout.PORTABLE) != 0:
            libc.sleep_ns(min(nap_ns, remaining_ns), state + layout.SCRATCH)
            nap_ns = min(2 * nap_ns, LONGEST_NAP_NS)
        else:
            _sleep(state, rank, generation, remaining_ns)
            looked = 0  # whatever woke us (signal, death notice, tick) deserves a look
        if has_arrived(state, rank, generation):
            return OK
        now = libc.monotonic_ns()
        overdue = timeout_ns > 0 and now - began >= timeout_ns
        if overdue or now - looked >= TICK_NS:
            looked = now
            status = _look_around(state, generation, overdue)
            if status != OK:
                poke(state + layout.FAILURE_NS, now - began)
                return status


@routine
def _step_began(state, generation):
    """When this rank first blocked in this step: one timeout covers all ranks it awaits there."""
    if peek(state + layout.WAIT_GENERATION) != generation:
        poke(state + layout.WAIT_GENERATION, generation)
        poke(state + layout.WAIT_BEGAN_NS, libc.monotonic_ns())
    return peek(state + layout.WAIT_BEGAN_NS)


@routine
def _sleep(state, rank, generation, timeout_ns):
    """Sleep on a rank's ARRIVED word.

    The increment of SLEEPERS and the load of ARRIVED here, and the store of ARRIVED and the load
    of SLEEPERS in ``shm/step.publish``, are sequentially consistent: at least one side sees the
    other, so no wake-up is lost.
    """
    sleepers = rank_block(state, rank) + layout.SLEEPERS
    word = cell_of(state, rank, generation) + layout.ARRIVED
    fetch_add(sleepers, 1)
    seen = load_seq_cst(word)
    if seen != generation:
        libc.futex_wait(word, seen, timeout_ns, state + layout.SCRATCH)
    fetch_add(sleepers, -1)


@routine
def _look_around(state, generation, overdue):
    if signal_raised(state):
        return INTERRUPTED
    lost = False
    late = False
    for rank in range(peek(state + layout.COMM_SIZE)):
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        reason = layout.ARRIVED_IN_TIME
        if not has_arrived(state, rank, generation):
            reason = _why_missing(state, rank, generation)
        if reason == layout.ARRIVED_IN_TIME and overdue:
            if not has_arrived(state, rank, generation):
                reason = layout.LATE
                late = True
        elif reason != layout.ARRIVED_IN_TIME:
            lost = True
        poke(record + layout.REASON, reason)
    if lost:
        return LOST_PEER
    return TIMED_OUT if late else OK


@routine
def _why_missing(state, rank, generation):
    """Return DIED, LEFT or GAVE_UP, or ARRIVED_IN_TIME if the rank may still come."""
    condition = load_acquire(rank_block(state, rank) + layout.CONDITION)
    fd = peek(state + layout.LIVENESS_FD)
    reason = layout.ARRIVED_IN_TIME
    if condition == layout.CLOSED:
        reason = layout.LEFT
    elif condition == layout.FAILED:
        reason = layout.GAVE_UP
    elif not libc.lock_is_held(fd, rank, state + layout.SCRATCH):
        # What it announced before it gave up the lock can be read now, if not before.
        condition = load_acquire(rank_block(state, rank) + layout.CONDITION)
        reason = layout.DIED
        if condition != layout.MEMBER:
            reason = layout.LEFT if condition == layout.CLOSED else layout.GAVE_UP
    # It may have arrived just before it ended; then it is not missing.
    if reason != layout.ARRIVED_IN_TIME and has_arrived(state, rank, generation):
        return layout.ARRIVED_IN_TIME
    return reason


@routine
def signal_raised(state):
    """Run Python's signal handlers; keep what they raised for the exception to come."""
    ensured = libc.gil_ensure()
    raised = libc.check_signals() != 0
    if raised:
        kind = state + layout.PENDING_EXCEPTION
        poke(kind, 0)
        poke(kind + 8, 0)
        poke(kind + 16, 0)
        libc.fetch_exception(kind, kind + 8, kind + 16)
        libc.normalize_exception(kind, kind + 8, kind + 16)
    libc.gil_release(ensured)
    return raised
