/* Allreduce by stripes: allreduce._stripes, and the operation that follows it.
 *
 * An operation of CHUNKS chunks takes CHUNKS + 1 steps: step k brings chunk k in, folds this rank's
 * stripe of chunk k from all slots, and takes out the stripes that all ranks folded in step k - 1.
 * A value stands for the generation that wrote it; two operations follow each other, so that the
 * second fills slots and stripes while a slow rank still copies results of the first.
 *
 * Memory is weak as in step.pml: results are published by the ARRIVED of the step that follows.
 */
#include "common.pml"
#ifndef CHUNKS
#define CHUNKS 3
#endif
#define STEPS (2 * (CHUNKS + 1))

#define IS_FIRST(g) ((g) % (CHUNKS + 1) == 1) /* begin == 0: nothing to take out */
#define IS_LAST(g) ((g) % (CHUNKS + 1) == 0)  /* length == 0: nothing to bring in or to fold */

#ifdef FAULT_ONE_STRIPE
#define STRIPE(rank, g) ((rank) * 2)
#else
#define STRIPE(rank, g) CELL(rank, g) /* slot.stripe_of */
#endif

byte arrived[R * 2];
byte slot[R * 2];
byte stripe[R * 2];
byte unseen_arrived[R * 2];
byte unseen_slot[R * 2];
byte unseen_stripe[R * 2];

/* Step g publishes its slot, and the stripe of the step before. */
#ifdef FAULT_ONE_STRIPE
#define STORED_BEFORE(rank, parity) \
    (unseen_slot[CELL(rank, parity)] == 0 && unseen_stripe[CELL(rank, 0)] == 0)
#else
#define STORED_BEFORE(rank, parity) \
    (unseen_slot[CELL(rank, parity)] == 0 && unseen_stripe[CELL(rank, 1 - (parity))] == 0)
#endif
#include "memory.pml"

#ifdef FAULT_FOLD_IN_PLACE /* the result replaces the contribution, which others still fold */
#define RESULT slot
#define UNSEEN_RESULT unseen_slot
#else
#define RESULT stripe
#define UNSEEN_RESULT unseen_stripe
#endif

/* step.await_all */
inline await_all(g) {
    other = NEXT(me);
    do
    :: other != me -> arrived[CELL(other, g)] == g; other = NEXT(other)
    :: else -> break
    od
}

/* allreduce._fold_slots: this rank's stripe of every slot. */
inline fold_slots(g) {
    other = NEXT(me);
    do
    :: other != me -> assert(slot[CELL(other, g)] == g); other = NEXT(other)
    :: else -> break
    od;
    STORE(STRIPE(me, g), UNSEEN_RESULT, g)
}

/* allreduce._take_out */
inline take_out(g) {
    other = NEXT(me);
    do
    :: other != me -> assert(RESULT[STRIPE(other, g)] == (g)); other = NEXT(other)
    :: else -> break
    od
}

active [R] proctype rank() {
    byte me = _pid;
    byte g = 1;
    byte other;

    do
    :: g <= STEPS ->
        if
        :: IS_LAST(g) -> skip
        :: else -> STORE(CELL(me, g), unseen_slot, g) /* slot.fill_slot */
        fi;
#ifdef FAULT_TAKE_OUT_EARLY /* before this step says that all have folded the last chunk */
        if :: IS_FIRST(g) -> skip :: else -> take_out(g - 1) fi;
#endif
        STORE(CELL(me, g), unseen_arrived, g); /* step.publish */
        await_all(g);
        if :: IS_LAST(g) -> skip :: else -> fold_slots(g) fi;
#ifdef FAULT_SAME_STEP /* takes out what the same step folds */
        if :: IS_LAST(g) -> skip :: else -> take_out(g) fi;
#elif !defined(FAULT_TAKE_OUT_EARLY)
        if :: IS_FIRST(g) -> skip :: else -> take_out(g - 1) fi;
#endif
        other = 0;
        g++
    :: else -> break
    od
}

active [R] proctype memory() {
    byte its = _pid - R;

end:do
    :: BECOMES_VISIBLE(true, CELL(its, 0), slot, unseen_slot)
    :: BECOMES_VISIBLE(true, CELL(its, 1), slot, unseen_slot)
    :: BECOMES_VISIBLE(true, CELL(its, 0), stripe, unseen_stripe)
    :: BECOMES_VISIBLE(true, CELL(its, 1), stripe, unseen_stripe)
    :: BECOMES_VISIBLE(RELEASED(its, 0), CELL(its, 0), arrived, unseen_arrived)
    :: BECOMES_VISIBLE(RELEASED(its, 1), CELL(its, 1), arrived, unseen_arrived)
    od
}
