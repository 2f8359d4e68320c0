"""One collective at a time on one communicator: entering, leaving, and staying broken."""

from cobre_kernels import layout, status
from cobre_kernels.atomics import compare_exchange, load_acquire, poke, store_release
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.routine import routine


@routine
def enter(state):
    """Claim the communicator for this thread, or say why it cannot be used.

    The exchange is an acquire that pairs with the release in :func:`leave`, so that the next
    thread sees the state as the last one left it.
    """
    found = compare_exchange(state + layout.GUARD, layout.IDLE, layout.BUSY)
    if found == layout.IDLE:
        return status.OK
    return refusal(found)


@routine
def refusal(guard):
    """Status of a call that meets a guard which is not IDLE."""
    if guard == layout.GUARD_BROKEN:
        return status.IS_BROKEN
    if guard == layout.GUARD_CLOSED:
        return status.IS_CLOSED
    if guard == layout.GUARD_FORKED:
        return status.IS_FORKED
    if guard == layout.GUARD_FINALIZED:
        return status.IS_FINALIZED
    return status.BUSY_ELSEWHERE


@routine
def usability(state):
    """Status of a look at the guard without claiming it."""
    found = load_acquire(state + layout.GUARD)
    return status.OK if found == layout.IDLE else refusal(found)


@routine
def leave(state):
    """Give the communicator free."""
    # Release: pairs with the exchange in enter; the next thread sees the state as it is now.
    store_release(state + layout.GUARD, layout.IDLE)


@routine
def leave_broken(state, outcome, kind):
    """Break the communicator; what broke it stays readable."""
    poke(state + layout.FAILURE, outcome)
    poke(state + layout.FAILURE_KIND, kind)
    # Release: pairs with enter and usability; publishes the two words above and the records.
    store_release(state + layout.GUARD, layout.GUARD_BROKEN)


@kernel(arguments=0)
def shut_kernel(state):
    """Let no collective begin any more; return what the guard held.

    If that is BUSY, a collective is under way in another thread, and nothing has changed.
    """
    word = address_of(state) + layout.GUARD
    # Acquire and release, as in enter: whoever closes sees what the last collective left.
    found = compare_exchange(word, layout.IDLE, layout.GUARD_CLOSED)
    if found == layout.GUARD_BROKEN:
        compare_exchange(word, layout.GUARD_BROKEN, layout.GUARD_CLOSED)
    return found


KERNELS = (shut_kernel,)
