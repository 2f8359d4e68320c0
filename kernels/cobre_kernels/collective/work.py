"""Work that is shared out as it is done: each claim gets the next item of its node.

The ranks of a node count their claims together, in a region. A claim adds one to the count.
The value before that is the number of the claim in this round: no number is given twice, and none
is left out. There are two counts, by the parity of the round. So the leader sets the next count to
zero while others still claim by the present one, and one barrier is enough: when a rank has passed
the barrier, every rank has begun to reset, and none claims by the old count any more.

What a rank knows of a round lies in private memory, where a reset changes it. Other threads of that
rank may claim meanwhile. So a reset makes ``round`` odd before it changes anything, and a claim
looks at ``round`` before and after. A claim that has seen ``round`` change is refused, because its
number may be of one round and its item of another.
"""

from typing import NamedTuple

from cobre_kernels.collective.guard import standing
from cobre_kernels.collective.status import OK, WORK_IS_CLOSED, WORK_IS_RESET
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
CLOSED = -1  # of the round: odd, so that no claim continues

CLAIMS = Record(
    "Claims",
    "How many claims the ranks of a node have made in a round; in a region of these ranks.",
    line_bytes=LINE_BYTES,
    made=shared("claims, of which the last ones may have found nothing left"),
)

WORK = Record(
    "Work",
    "What a rank knows of its shared-out work; in the memory of its own process.",
    comm=pointer("Comm", "the communicator"),
    round=shared("number of the round, doubled; one more: this rank resets it; or CLOSED"),
    claims=rows("Claims", "of this node, by the parity of the round"),
    count=word("items of all nodes"),
    first=word("the first item of this node, in this round"),
    last=word("and the one behind the last"),
    order=word("address of this node's items in their order; 0: they ascend"),
    claimed=table("ticks when this rank claimed each item; those of older rounds stay"),
    began=word("ticks when this rank began the round"),
    ended=shared("ticks of the first claim of this rank that found nothing left; 0: none has"),
)


class Turn(NamedTuple):
    """What the word of the round must hold, and what it holds from then on."""

    held: int
    following: int


@routine
def claim(work):
    """Return an item of this node, NOTHING_LEFT, or minus the status of a claim that is refused.

    The first load of the round pairs with the exchange in turn_kernel, so this rank sees the words
    of this round. The addition to the count is sequentially consistent, so it follows these reads.
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
            item = load_acquire(order + WORD_BYTES * place)  # before the round is read again
        work.claimed[item] = ticks()
    found = load_acquire(work.round)
    return item if found == number else -_refusal(found)


@routine
def _refusal(number):
    """Return the status of a claim that meets a round which is not open, or another round."""
    return WORK_IS_CLOSED if number == CLOSED else WORK_IS_RESET


@kernel(WORK)
def claim_kernel(work):
    """Claim from Python."""
    return claim(work)


@kernel(WORK, Turn)
def turn_kernel(work, call):
    """Set the word of the round to ``following`` if it holds ``held``; return what it held.

    The exchange pairs with the loads in claim. A fence follows, so that a claim which reads a word
    that is stored after it sees the round change too.
    """
    found = compare_exchange(work.round, call.held, call.following)
    fence_seq_cst()
    return found


@kernel(WORK)
def ticks_kernel(work):
    """Read the clock by which claims are noted."""
    return ticks()
