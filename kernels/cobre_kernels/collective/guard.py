"""One collective at a time on one communicator: acquiring, releasing, and staying broken."""

from cobre_kernels.collective import comm as states
from cobre_kernels.collective import status
from cobre_kernels.collective.calls import BodyStatus, Refusal
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.seeing.journal import CLOSED_WELL, note_end
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import compare_exchange, load_acquire, store_release
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run

BUSY_NAP_MS = 1  # between two looks at a communicator that another thread uses


@routine
def acquire(comm):
    """Take the communicator for this thread, or return why it cannot be used.

    The exchange is an acquire that pairs with the release in :func:`release`, so that this thread
    sees the record as the last collective left it.
    """
    found = compare_exchange(comm.guard, states.IDLE, states.BUSY)
    if found == states.IDLE:
        return status.OK
    outcome = refusal(found)
    if outcome == status.BUSY_ELSEWHERE:
        run(comm.refuse, comm, Refusal(0, outcome, 0))
    return outcome


@routine
def refusal(guard):
    """Return the status of a call that finds this value of the guard, which is not IDLE."""
    if guard == states.BROKEN:
        return status.IS_BROKEN
    if guard == states.CLOSED:
        return status.IS_CLOSED
    if guard == states.FORKED:
        return status.IS_FORKED
    if guard == states.FINALIZED:
        return status.IS_FINALIZED
    return status.BUSY_ELSEWHERE


@routine
def standing(comm):
    """Return OK, or why the communicator cannot be used; a collective under way is no reason."""
    found = load_acquire(comm.guard)
    return status.OK if found == states.IDLE or found == states.BUSY else refusal(found)


@routine
def is_forked(comm):
    """Tell whether this process is a child of the process that has made the communicator."""
    return load_acquire(comm.guard) == states.FORKED


@routine
def release(comm):
    """Make the communicator available again."""
    # Release: pairs with the exchange in acquire; the next thread sees the record as it is now.
    store_release(comm.guard, states.IDLE)


@routine
def borrow(comm):
    """Take the communicator, even if it is broken, to note something; return what the guard held.

    If the guard held neither IDLE nor BROKEN, the communicator is not taken. The exchanges pair
    with the stores in :func:`release`, :func:`release_broken` and :func:`give_back`, like the
    exchange in :func:`acquire`.
    """
    found = compare_exchange(comm.guard, states.IDLE, states.BUSY)
    if found == states.BROKEN:
        found = compare_exchange(comm.guard, states.BROKEN, states.BUSY)
    return found


@routine
def give_back(comm, held):
    """Set the guard back to the value that :func:`borrow` has returned."""
    # Release: pairs with the exchanges in acquire and borrow.
    store_release(comm.guard, held)


@routine
def release_broken(comm, outcome):
    """Break the communicator; the status and the failure records stay readable."""
    comm.failure = outcome
    note_end(comm, outcome)
    # Release: pairs with acquire and standing; publishes ``failure`` and the failure records.
    store_release(comm.guard, states.BROKEN)


@kernel(COMM, BodyStatus)
def fail_kernel(comm, call):
    """End a collective that has failed: tell the other ranks, and break the communicator.

    If a signal handler has forked a child, the child leaves the communicator alone, because the
    communicator belongs to the parent.
    """
    is_rank = not is_forked(comm)
    if is_rank:
        run(comm.abandon_body, comm, call)
    libc.regain_gil(comm.thread)
    if is_rank:
        release_broken(comm, call.status)
    return call.status


@kernel(COMM, Refusal)
def refuse_kernel(comm, call):
    """End a refused call; in a thread that cannot raise, break the communicator.

    numba drops an error that is raised in one of numba's own threads, such as those of a
    ``prange``. So the next call of this rank raises the error, and the other ranks learn that this
    rank gave up.
    """
    if libc.can_raise():
        if call.is_owner != 0:
            release(comm)
        return status.OK
    found = states.IDLE if call.is_owner != 0 else states.BUSY
    while found == states.BUSY:
        libc.poll(0, 0, BUSY_NAP_MS)
        # Pairs with the store in release, or release_broken, of the thread inside a collective.
        found = compare_exchange(comm.guard, states.IDLE, states.BUSY)
    if found == states.IDLE:
        _give_up(comm)
        comm.signature = call.operation
        comm.refusal = call.status
        release_broken(comm, status.UNSEEN)
    return status.OK


@routine
def _give_up(comm):
    """Tell the other ranks, between two steps, that this rank will not enter the next step."""
    comm.node.generation += 1
    run(comm.abandon_body, comm, BodyStatus(status.UNSEEN))


@kernel(COMM, BodyStatus)
def give_up_kernel(comm, call):
    """Break a communicator that its rank leaves between two steps; return what the guard held.

    If the guard held another value than IDLE, nothing has changed.
    """
    # Pairs with the store in release: this thread sees the record as the last collective left it.
    found = compare_exchange(comm.guard, states.IDLE, states.BUSY)
    if found == states.IDLE:
        _give_up(comm)
        release_broken(comm, call.status)
    return found


@kernel(COMM)
def shut_kernel(comm):
    """Make sure that no more collective begins; return what the guard held.

    If the guard held BUSY, a collective is under way in another thread, and nothing has changed.
    The exchanges pair with the store in :func:`release` or :func:`release_broken`: the closing
    thread sees what the last collective left.
    """
    found = compare_exchange(comm.guard, states.IDLE, states.CLOSED)
    if found == states.IDLE:
        note_end(comm, CLOSED_WELL)
    elif found == states.BROKEN:
        compare_exchange(comm.guard, states.BROKEN, states.CLOSED)
    return found
