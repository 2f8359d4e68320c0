/* Shared-out work: collective/work.claim, and Work.reset.
 *
 * A place in the order of a round gives another item in each round, so a claim that mixes two rounds
 * gives an item twice. A second thread of rank 0 claims THREAD times, at any moment, also while rank 0
 * resets. An item that this thread is refused may be lost, but no item is given twice.
 */
#include "common.pml"
#define ITEMS 2
#ifndef ROUNDS
#define ROUNDS 3
#endif
#define NOTHING_LEFT 254
#define REFUSED 255
#define GIVEN(n, item) given[((n) >> 1) * ITEMS + (item)]
#ifdef FAULT_ONE_COUNT
#define COUNT(n) made[0]
#else
#define COUNT(n) made[((n) >> 1) & 1]
#endif

byte made[2];                  /* Claims.made */
byte round[R];                 /* Work.round: doubled, and odd while the rank resets */
byte order[R];                 /* Work.order: by how much items are shifted */
byte entered[R];               /* barriers that a rank has entered */
bit given[(ROUNDS + 1) * ITEMS]; /* whether an item of a round has been given out */

/* work.claim */
inline claim() {
    n = round[me];
    item = REFUSED;
    if
    :: n & 1 -> skip
    :: else ->
#ifdef FAULT_LOAD_AND_STORE
        place = COUNT(n);
        COUNT(n) = place + 1;
#else
        d_step { place = COUNT(n); COUNT(n) = COUNT(n) + 1 };
#endif
        if
        :: place >= ITEMS -> item = NOTHING_LEFT
        :: else -> item = (place + order[me]) % ITEMS
        fi;
#ifndef FAULT_NO_SECOND_LOOK
        if
        :: round[me] != n -> item = REFUSED
        :: else
        fi;
#endif
        if
        :: item < ITEMS -> d_step { assert(!GIVEN(n, item)); GIVEN(n, item) = 1 }
        :: else
        fi
    fi;
    place = 0
}

/* Work.reset */
inline reset() {
#ifndef FAULT_STAYS_OPEN
    round[me]++;
#endif
#ifndef FAULT_ZERO_LATE
    if :: me == 0 -> COUNT(n + 2) = 0 :: else fi;
#endif
    entered[me]++;
#ifndef FAULT_NO_BARRIER
    other = NEXT(me);
    do
    :: other != me -> entered[other] >= entered[me]; other = NEXT(other)
    :: else -> break
    od;
#endif
#ifdef FAULT_ZERO_LATE
    if :: me == 0 -> COUNT(n + 2) = 0 :: else fi;
#endif
#ifndef THREAD
    /* If a rank finds no item left, each item of that round was given out. */
    assert(item != NOTHING_LEFT || (GIVEN(n, 0) && GIVEN(n, ITEMS - 1)));
#endif
    other = 0;
    order[me] = (n / 2 + 1) % ITEMS;
#ifdef FAULT_STAYS_OPEN
    round[me] = n + 2
#else
    round[me]++
#endif
}

active [R] proctype rank() {
    byte me = _pid;
    byte n, place, item, other;

    do
    :: round[me] < 2 * ROUNDS ->
        do /* until no item is left, or until the rank stops by itself */
        :: claim(); if :: item == NOTHING_LEFT -> break :: else fi
        :: n = round[me]; item = 0; break
        od;
        reset()
    :: else -> break
    od
}

#ifdef THREAD
active proctype thread() {
    byte me = 0;
    byte n, place, item;
    byte claims;

    do
    :: claims < THREAD -> claim(); claims++
    :: break
    od
}
#endif
