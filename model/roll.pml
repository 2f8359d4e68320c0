/* The roll calls of the survivors of one node: shm/council.py, and the loop of shrink.py.
 *
 * A rank calls ASSEMBLE, then MAKE as often as MAKES says, and ASSEMBLE again if a roll lacks a member.
 * The value of a row is the number of its call, and a roll has this number too, so that torn values
 * show. The store of a turn becomes visible to the others at any later moment, after all stores before
 * it. A row or a roll is visible immediately, which is the worst for a rank that still reads the old
 * row or roll.
 *
 * EVENTS is how often something bad happens, to any rank, at any moment: the rank dies, or is
 * interrupted, or never calls shrink. With -DDEADLINE one such event is that a rank's time runs out
 * although the others may still arrive; when nothing else can happen any more, every rank's time is up.
 */
#include "common.pml"
#ifndef MAKES
#define MAKES 2
#endif
#ifndef EVENTS
#define EVENTS 2
#endif

#define ALL ((1 << R) - 1)
#define BIT(rank) (1 << (rank))
#define AWAY 255 /* Seat.turn */

#define NO_OUTCOME 0 /* the rank has not ended: it died, never arrives, or waits for ever */
#define RETURNED 1
#define INTERRUPTED 2
#define TOO_LATE 3   /* the rank raises because time is over, as all survivors do */

#ifdef FAULT_ONE_ROW
#define ROW(rank) row[rank]
#else
#define ROW(rank) row[CELL(rank, call)]
#endif
#ifdef FAULT_ONE_ROLL
#define ROLL(rank) roll[rank]
#else
#define ROLL(rank) roll[CELL(rank, call)]
#endif

/* A roll has its call and the members that have answered. A decision has its call, whether time is
 * over, and a rank.
 */
#define PACKED(first, second) ((first) << 3 | (second))
#define CALL_OF(word) ((word) >> 3)
#define REST_OF(word) ((word) & 7)
#define TIME_OVER 4

byte turn[R];        /* Seat.turn */
byte unseen[R];      /* the store of a turn that is not visible yet */
byte row[R * 2];     /* Seat.rows */
byte roll[R * 2];
byte decision;       /* Council.decision */
bit lock[R] = 1;     /* the record lock, which the operating system drops at death */
byte outcome[R];     /* ghost */
byte agreed[2];      /* ghost: the roll that was read last, for even and for odd calls */
bit late_told[2];    /* ghost: whether time was over in this roll */
byte returned;       /* ghost: the members with which a rank has returned; 0: no rank has */
byte events = EVENTS;
bit trouble;         /* ghost: something bad has happened */
bit time_is_up;

#define HAS_ANSWERED(rank) ((rank) == me || (turn[rank] >= call && turn[rank] != AWAY))
#ifdef FAULT_NO_LOCK
#define LIVES(rank) (turn[rank] != AWAY)
#else
#define LIVES(rank) (lock[rank] && turn[rank] != AWAY)
#endif
#define IS_DECIDED (CALL_OF(decision) >= call)

inline happen() { events--; trouble = 1 }

/* The operating system drops a lock when all stores of the process are visible. A rank may end at any
 * moment; in the model it is enough if a rank can end before each store, and while it waits or reads.
 */
#define OR_ENDS \
    :: atomic { events > 0 -> happen(); \
            if :: unseen[me] -> turn[me] = unseen[me] :: true fi; \
            unseen[me] = 0; lock[me] = 0 }; goto end \
    :: atomic { events > 0 -> happen(); outcome[me] = INTERRUPTED }; goto leave

/* A release store to Seat.turn. */
#define TELL_TURN(value) atomic { unseen[me] == 0 -> unseen[me] = value }

/* The next member beside this rank. */
inline skip_ranks() {
    do
    :: other < R && (other == me || (members & BIT(other)) == 0) -> other++
    :: else -> break
    od
}

inline look_on() { other++; skip_ranks() }

/* council._propose */
inline propose() {
#ifdef FAULT_ANSWERED_FIRST
    who = who | BIT(me);
#else
    atomic { who = BIT(me); other = 0; skip_ranks() };
    do
    :: atomic {
            other < R ->
            if :: HAS_ANSWERED(other) -> who = who | BIT(other) :: else fi;
            look_on()
        }
    :: other == R -> break
    od;
#endif
#ifndef FAULT_LATE_FIRST
    if :: late & ~who :: else -> late = 0 fi;
#endif
    if
    :: ROLL(me) = PACKED(call, who)
    OR_ENDS
    fi;
    if
    :: atomic { unseen[me] == 0 ->
            if
#ifdef FAULT_PLAIN_STORE
            :: true ->
#else
            :: decision == before ->
#endif
                check_roll();
                decision = PACKED(call, (late -> TIME_OVER : 0) | me)
            :: else
            fi
        }
    OR_ENDS
    fi
}

/* A roll in time has each member that has answered or lives. A late roll lacks a member. */
inline check_roll() {
    other = 0;
    do
    :: other < R ->
        assert(late || !(members & BIT(other)) || (who & BIT(other)) ||
               ((!lock[other] || turn[other] == AWAY || unseen[other] == AWAY) && turn[other] != call));
        other++
    :: else -> break
    od;
    assert(!late || (members & ~who));
    other = 0
}

/* council._call_roll: puts the members that have answered into `who`; `late`: time was over */
inline call_roll() {
    call++;
#ifdef FAULT_TURN_FIRST
    TELL_TURN(call);
    if
    :: ROW(me) = call
    OR_ENDS
    fi;
#else
    if
    :: atomic { unseen[me] == 0 -> ROW(me) = call; unseen[me] = call }
    OR_ENDS
    fi;
#endif
    atomic { before = decision; late = 0; who = 0; other = 0; skip_ranks() };
    do /* the rank polls again and again: what a poll has found about another rank stays */
    :: IS_DECIDED -> break
    :: atomic { !IS_DECIDED && other == R } -> propose(); break
#ifdef FAULT_ANSWERED_FIRST
    :: atomic { !IS_DECIDED && other < R && HAS_ANSWERED(other) -> who = who | BIT(other); look_on() }
#else
    :: atomic { !IS_DECIDED && other < R && HAS_ANSWERED(other) -> look_on() }
#endif
    :: atomic { !IS_DECIDED && other < R && !HAS_ANSWERED(other) && !LIVES(other) -> look_on() }
#ifdef FAULT_ANSWERED_FIRST
    :: atomic { !IS_DECIDED && other < R && !HAS_ANSWERED(other) && LIVES(other) };
        if
        :: LIVES(other)
        :: atomic { !LIVES(other) -> look_on() }
        fi
#endif
#ifdef DEADLINE
    :: atomic {
            !IS_DECIDED && other < R && !HAS_ANSWERED(other) && LIVES(other) && (late || events > 0 || time_is_up) ->
            if :: late || time_is_up :: else -> happen() fi;
#ifdef FAULT_TIME_ALONE
            outcome[me] = TOO_LATE; goto leave
#else
            late = late | BIT(other); look_on()
#endif
        }
#endif
    OR_ENDS
    od;
    atomic {
#ifndef FAULT_OWN_CALL
        call = CALL_OF(decision); /* the next call, if this rank is late in its call */
#endif
        before = REST_OF(decision);
        late = (before & TIME_OVER -> 1 : 0);
        other = 0;
        read()
    };
    if /* the rank reads the roll once more, as late as a rank may read it */
    :: atomic { read(); before = 0 }
    OR_ENDS
    fi
}

/* Read the roll, and the rows of its members. */
inline read() {
#ifdef FAULT_OWN_ROLL
    if :: who :: else -> who = REST_OF(ROLL(before & 3)) fi;
#else
    who = REST_OF(ROLL(before & 3));
    assert(CALL_OF(ROLL(before & 3)) == call);
#endif
    check_agreement();
    do
    :: other < R -> assert((who & BIT(other)) == 0 || ROW(other) == call); other++
    :: else -> break
    od;
    other = 0
}

/* All ranks that read the roll of a call read the same. */
inline check_agreement() {
    if
    :: CALL_OF(agreed[call & 1]) == call ->
        assert(agreed[call & 1] == PACKED(call, who) && late_told[call & 1] == late)
    :: else ->
        agreed[call & 1] = PACKED(call, who);
        late_told[call & 1] = late
    fi
}

active [R] proctype rank() {
    byte me = _pid;
    byte call, made, members = ALL, who, other, before, late;

    if
    :: skip
    :: atomic { events > 0 -> happen() }; goto end
    fi;
assemble:
    call_roll();
    if :: late -> outcome[me] = TOO_LATE; goto leave :: else fi;
    atomic { members = who; who = 0 };
    made = 0;
    do
    :: made < MAKES ->
        call_roll();
        if :: late -> outcome[me] = TOO_LATE; goto leave :: else fi;
        if :: who != members -> goto assemble :: else fi;
        made++
    :: else -> break
    od;
    atomic {
        assert(returned == 0 || returned == members);
        returned = members;
        outcome[me] = RETURNED
    };
leave: skip;
#ifdef FAULT_NO_AWAY
    if :: outcome[me] == RETURNED -> TELL_TURN(AWAY) :: else fi;
#else
    TELL_TURN(AWAY);
#endif
end: skip;
    d_step { call = 0; made = 0; members = 0; who = 0; other = 0; before = 0; late = 0 }
}

active proctype memory() {
    do
    :: d_step { unseen[0] -> turn[0] = unseen[0]; unseen[0] = 0 }
    :: d_step { unseen[1] -> turn[1] = unseen[1]; unseen[1] = 0 }
#if R > 2
    :: d_step { unseen[2] -> turn[2] = unseen[2]; unseen[2] = 0 }
#endif
    od
}

active proctype quiet() { /* after some moment nothing bad happens any more */
    atomic { events > 0 -> events = 0 }
}

/* Runs when nothing can happen any more. */
active proctype last() {
    byte its;
    bit stays_away;

    timeout -> time_is_up = 1;
    timeout;
    d_step {
        do
        :: its < R ->
            if :: lock[its] && outcome[its] == NO_OUTCOME && turn[its] == 0 -> stays_away = 1 :: else fi;
            its++
        :: else -> break
        od;
        its = 0;
        do
        :: its < R ->
            /* Every wait ends, unless a rank never arrives and there is no deadline. */
#ifdef DEADLINE
            assert(outcome[its] != NO_OUTCOME || !lock[its] || turn[its] == 0);
#else
            assert(outcome[its] != NO_OUTCOME || !lock[its] || stays_away);
#endif
            /* All live ranks return, or none does; without a mishap, all return with all. */
            assert(returned == 0 || outcome[its] == RETURNED || outcome[its] == INTERRUPTED || !lock[its]);
            assert(trouble || (outcome[its] == RETURNED && returned == ALL));
            its++
        :: else -> break
        od
    }
}
