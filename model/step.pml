/* Steps, generations, parities and chunks: shm/step.py and slot.py, and the ways in which
 * barrier.py, broadcast.py, allgatherv.py and allreduce.py use them (its stripes: stripes.pml).
 *
 * A value stands for the generation that wrote it. `slot` stands for all that a rank writes for a
 * step before it publishes: signature, compared, count and payload of its cell, and its slot. Every step
 * writes and reads all of these, as late as any collective does. A step awaits the ranks in any order
 * in which some collective awaits ranks. So the loop of one rank stands for all mixtures of collectives
 * and chunks.
 *
 * With CASTS some steps are broadcasts whose root fills the slots of all ranks (slot.fill_slots).
 *
 * ARRIVED is sequentially consistent in the code; this model holds with less: release and acquire.
 */
#include "common.pml"
#ifndef STEPS
#define STEPS 5
#endif

#ifdef FAULT_ONE_SLOT
#define SLOT(rank, g) ((rank) * 2)
#else
#define SLOT(rank, g) CELL(rank, g)
#endif

#if defined(FAULT_ONE_WORD) || defined(FAULT_TOGGLE)
#define WORD(rank, g) ((rank) * 2)
#else
#define WORD(rank, g) CELL(rank, g)
#endif

#ifdef FAULT_TOGGLE /* instead of a generation, a flag that alternates between 1 and 2 */
#define FLAG(g) (2 - ((g) & 1))
#else
#define FLAG(g) (g)
#endif

/* wait.has_arrived, step.await_rank */
#ifdef FAULT_MODULO_2
#define HAS_ARRIVED(rank, g) ((arrived[WORD(rank, g)] & 1) == ((g) & 1))
#else
#define HAS_ARRIVED(rank, g) (arrived[WORD(rank, g)] == FLAG(g))
#endif

byte arrived[R * 2]; /* Cell.arrived, as the other ranks see it */
byte slot[R * 2];
byte unseen_arrived[R * 2];
#ifdef CASTS /* own, cast, cast, own, ...: in a slot each kind follows each, from changing roots */
#define IS_CAST(g) ((g) % 3 != 1)
#define ROOT(g) ((g) % R)
#define UNSEEN(writer, cell) ((writer) * R * 2 + (cell))
#define CASTS_BEFORE(writer, parity) \
    (unseen_slot[UNSEEN(writer, CELL(0, parity))] == 0 && \
     unseen_slot[UNSEEN(writer, CELL(1, parity))] == 0 && \
     unseen_slot[UNSEEN(writer, CELL(R - 1, parity))] == 0)
byte unseen_slot[R * R * 2];
#else
byte unseen_slot[R * 2];
#endif

byte entered[R]; /* ghost: the last step that a rank has entered */

#if R == 2 || defined(FAULT_EXCHANGE_ALL) /* slot.slot_of: ranks fill the slots that they have read */
#define EXCHANGE
#define EXCHANGED(rank, g) (((rank) + (g)) % R)
byte exchanged_slot[R];
byte unseen_exchanged_slot[R * R]; /* for each writer and slot */
#if R == 2
#define EXCHANGED_BEFORE(rank) \
    (unseen_exchanged_slot[(rank) * R] == 0 && unseen_exchanged_slot[(rank) * R + 1] == 0)
#else
#define EXCHANGED_BEFORE(rank) \
    (unseen_exchanged_slot[(rank) * R] == 0 && unseen_exchanged_slot[(rank) * R + 1] == 0 && \
     unseen_exchanged_slot[(rank) * R + 2] == 0)
#endif
#else
#define EXCHANGED_BEFORE(rank) true
#endif

#ifdef CASTS
#define STORED_BEFORE(rank, parity) CASTS_BEFORE(rank, parity)
#elif defined(FAULT_ONE_SLOT) || defined(FAULT_ONE_WORD) || defined(FAULT_TOGGLE)
#define STORED_BEFORE(rank, parity) \
    (unseen_slot[CELL(rank, 0)] == 0 && unseen_slot[CELL(rank, 1)] == 0 && EXCHANGED_BEFORE(rank))
#else
#define STORED_BEFORE(rank, parity) (unseen_slot[CELL(rank, parity)] == 0 && EXCHANGED_BEFORE(rank))
#endif
#include "memory.pml"

#ifdef EXCHANGE
#define ONE_BECOMES_VISIBLE(rank, at) \
    d_step { \
        unseen_exchanged_slot[(rank) * R + (at)] != 0 -> \
        exchanged_slot[at] = unseen_exchanged_slot[(rank) * R + (at)]; \
        unseen_exchanged_slot[(rank) * R + (at)] = 0 \
    }
#endif

#ifdef CASTS
#define CAST_BECOMES_VISIBLE(writer, cell) \
    d_step { \
        unseen_slot[UNSEEN(writer, cell)] != 0 -> \
        slot[cell] = unseen_slot[UNSEEN(writer, cell)]; \
        unseen_slot[UNSEEN(writer, cell)] = 0 \
    }
#endif

/* slot.fill_slot, and the relaxed stores of step.publish */
inline fill(g) {
#ifdef CASTS
    if
    :: IS_CAST(g) && ROOT(g) == me ->
        other = 0;
        do
        :: other < R ->
            STORE(UNSEEN(me, SLOT(other, g)), unseen_slot, g);
#ifdef FAULT_CAST_BOTH /* as if the slots of the other parity were free too */
            STORE(UNSEEN(me, SLOT(other, g + 1)), unseen_slot, g);
#endif
            other++
        :: else -> break
        od
    :: IS_CAST(g) && ROOT(g) != me -> skip
    :: else -> STORE(UNSEEN(me, SLOT(me, g)), unseen_slot, g)
    fi;
#else
    STORE(SLOT(me, g), unseen_slot, g);
#endif
#ifdef EXCHANGE
    STORE(me * R + EXCHANGED(me, g), unseen_exchanged_slot, g)
#endif
}

/* A reader must find what the owner wrote for this step, however long it reads. */
inline read_slot(rank, g) {
#ifdef CASTS /* what a root has put into any slot */
    assert(!IS_CAST(g) || rank != ROOT(g) || \
           (slot[SLOT(0, g)] == g && slot[SLOT(1, g)] == g && slot[SLOT(R - 1, g)] == g));
    assert(IS_CAST(g) || slot[SLOT(rank, g)] == g);
#else
    assert(slot[SLOT(rank, g)] == g);
#endif
#ifdef EXCHANGE
    assert(exchanged_slot[EXCHANGED(rank, g)] == g)
#endif
}

/* step.await_rank */
inline await(rank, g) {
#ifdef FAULT_NO_ACQUIRE /* the slot may be loaded before the flag */
    if
    :: early = slot[SLOT(rank, g)]; HAS_ARRIVED(rank, g); assert(early == g)
    :: HAS_ARRIVED(rank, g)
    fi;
    early = 0;
#else
    HAS_ARRIVED(rank, g);
#endif
    read_slot(rank, g)
}

inline check_entered(g) { /* no rank leaves before all have entered, and no rank is two steps ahead */
    d_step {
        other = 0;
        do
        :: other < R ->
            assert(entered[other] >= g);
            assert(entered[other] <= g + 1);
            other++
        :: else -> break
        od
    }
}

active [R] proctype rank() {
    byte me = _pid;
    byte g = 1;
    byte other;
#ifdef FAULT_NO_ACQUIRE
    byte early;
#endif

#ifdef FAULT_AHEAD
    fill(1);
#endif
    do
    :: g <= STEPS ->
#ifndef FAULT_AHEAD
        fill(g);
#endif
        atomic { /* step.publish */
            unseen_arrived[WORD(me, g)] == 0 ->
            unseen_arrived[WORD(me, g)] = FLAG(g);
            entered[me] = g
        };
#ifdef FAULT_AHEAD /* a chunk too early: the next slot is filled while this step is awaited */
        fill(g + 1);
#endif
#ifdef FAULT_LATE_READ /* the next step is published before this one is read to its end */
        if
        :: g > 1 ->
            other = NEXT(me);
            do
            :: other != me -> read_slot(other, g - 1); other = NEXT(other)
            :: else -> break
            od
        :: else
        fi;
#endif
        if /* broadcast._chunk awaits the root first, which may be any rank; other bodies do not */
        :: skip
        :: other = NEXT(me); await(other, g)
#if R > 2
        :: other = NEXT(NEXT(me)); await(other, g)
#endif
        fi;
        other = NEXT(me); /* step.await_all, allgatherv._chunk */
        do
        :: other != me ->
#ifdef FAULT_SKIP_ONE
            if :: NEXT(other) == me -> skip :: else -> await(other, g) fi;
#else
            await(other, g);
#endif
            other = NEXT(other)
        :: else -> break
        od;
        check_entered(g);
        other = NEXT(me);
        do /* allreduce._fold_slots reads all slots when all ranks have arrived */
        :: other != me -> read_slot(other, g); other = NEXT(other)
        :: else -> break
        od;
#ifdef FAULT_OWN_SLOT /* a rank reads its own contribution from a slot that the other may fill again */
        assert(exchanged_slot[EXCHANGED(me, g)] == g);
#endif
        other = 0;
        g++
    :: else -> break
    od
}

active [R] proctype memory() {
    byte its = _pid - R;

end:do
#ifdef CASTS
    :: CAST_BECOMES_VISIBLE(its, CELL(0, 0))
    :: CAST_BECOMES_VISIBLE(its, CELL(0, 1))
    :: CAST_BECOMES_VISIBLE(its, CELL(1, 0))
    :: CAST_BECOMES_VISIBLE(its, CELL(1, 1))
    :: CAST_BECOMES_VISIBLE(its, CELL(R - 1, 0))
    :: CAST_BECOMES_VISIBLE(its, CELL(R - 1, 1))
#else
    :: BECOMES_VISIBLE(true, CELL(its, 0), slot, unseen_slot)
    :: BECOMES_VISIBLE(true, CELL(its, 1), slot, unseen_slot)
#endif
#ifdef EXCHANGE
    :: ONE_BECOMES_VISIBLE(its, 0)
    :: ONE_BECOMES_VISIBLE(its, 1)
#if R > 2
    :: ONE_BECOMES_VISIBLE(its, 2)
#endif
#endif
    :: BECOMES_VISIBLE(RELEASED(its, 0), CELL(its, 0), arrived, unseen_arrived)
    :: BECOMES_VISIBLE(RELEASED(its, 1), CELL(its, 1), arrived, unseen_arrived)
    od
}
