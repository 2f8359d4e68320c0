"""Work that is shared out while it is done: each claim of a rank gets the next item of its node.

The ranks of a node count their claims together, in a region. A claim adds one to the count. The
count before the addition is the number of the claim in this round. So no two claims have the same
number, and no number is left out. Even rounds use one count, odd rounds another. So the leader can
set the count of the next round to zero while other ranks still claim by the count of this round.
One barrier is enough: when a rank has passed the barrier, every rank has begun to reset, and no
rank uses the old count any more.

What a rank knows about a round is in private memory. A reset changes these words, and other threads
of the rank may claim at the same time. So a reset makes ``round`` odd before it changes any other
word, and a claim loads ``round`` first, and once more at the end. If ``round`` has changed, the
claim is refused, because its number may belong to one round and its item to another.
"""

from cobre_kernels.collective.guard import standing
from cobre_kernels.collective.status import OK, WORK_IS_CLOSED, WORK_IS_RESET
from cobre_kernels.machine.access import Swap
from cobre_kernels.machine.atomics import (
    compare_exchange,
    fence_seq_cst,
    fetch_add,
    load_acquire,
    load_relaxed,
    store_relaxed,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import (
    LINE_BYTES,
    WORD_BYTES,
    Record,
    pointer,
    rows,
    shared,
    table,
    word,
)
from cobre_kernels.machine.ticks import ticks

NOTHING_LEFT = -1
CLOSED = -1  # in the word of the round: odd, so that every claim is refused

CLAIMS = Record(
    "Claims",
    "How many claims the ranks of a node have made in a round; in a region of these ranks.",
    line_bytes=LINE_BYTES,
    made=shared("number of claims; the last claims may have found no item left"),
)

WORK = Record(
    "Work",
    "What a rank knows about shared-out work; in the memory of this process.",
    comm=pointer("Comm", "the communicator"),
    round=shared("twice the round's number; plus 1 while this rank resets the work; or CLOSED"),
    claims=rows("Claims", "counts of this node's claims: one for even rounds, one for odd rounds"),
    count=word("number of items of all nodes"),
    first=word("the first item of this node in this round"),
    last=word("the number behind the last item of this node in this round"),
    order=word("address of this node's items in the order of their claims; 0: in ascending order"),
    claimed=table("ticks when this rank last claimed each item, perhaps in an older round"),
    began=word("ticks when this rank began the round"),
    ended=shared("ticks of this rank's first claim that found no item left; 0: no such claim"),
)


@routine
def claim(work):
    """Return an item of this node, NOTHING_LEFT, or minus the status of a claim that is refused.

    The first load of the round pairs with the exchange in turn_kernel, so this rank sees the words
    of this round. The addition to the count is sequentially consistent, so it follows the reads of
    these words.
    """
    outcome = standing(work.comm)
    if outcome != OK:
        return -outcome
    number = load_acquire(work.round)
    if number & 1 != 0:
        return -_refusal(number)
    first, last, order = work.first, work.last, work.order
    # Pairs with store_word_kernel, by which the leader has set the count to zero.
    place = fetch_add(work.claims[number >> 1 & 1].made, 1)
    item = first + place
    if item >= last:
        item = NOTHING_LEFT
        if load_relaxed(work.ended) == 0:
            store_relaxed(work.ended, ticks())
    else:
        if order != 0:
            item = load_acquire(order + WORD_BYTES * place)  # before ``round`` is loaded again
        work.claimed[item] = ticks()
    found = load_acquire(work.round)
    return item if found == number else -_refusal(found)


@routine
def _refusal(number):
    """Return the status of a refused claim; ``number`` is the value of ``round`` that was found."""
    return WORK_IS_CLOSED if number == CLOSED else WORK_IS_RESET


@kernel(WORK)
def claim_kernel(work):
    """Claim an item, for a call from Python."""
    return claim(work)


@kernel(WORK, Swap)
def turn_kernel(work, call):
    """Set the word of the round if it holds the expected value; return what it held.

    The exchange pairs with the loads in claim. A fence follows the exchange. So a claim that reads
    a word which was stored after the fence also sees that ``round`` has changed.
    """
    found = compare_exchange(work.round, call.expected, call.value)
    fence_seq_cst()
    return found


@kernel(WORK)
def ticks_kernel(work):
    """Read the clock that claims use."""
    return ticks()
