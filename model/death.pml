/* Ranks that die, leave, are interrupted, disagree or never arrive, and the polls that find such
 * ranks: wait._wait_long, wait.look_around_kernel, wait._why_missing, step.await_rank and
 * step.abandon_body.
 *
 * A sleep ends at every tick, and an arrival ends any wait, so wake-ups play no part here. A poll
 * that would see the same as the poll before is left out: `changed` says whether anything has
 * happened since the poll before began. So a rank that waits for ever is a rank that nothing can move.
 *
 * EVENTS is how often something bad happens, to any rank, at any moment. With -DDEADLINE one such event
 * is that a rank's time runs out although the others may still arrive; and when nothing else can happen
 * any more, every rank's time is up. Without -DDEADLINE there is no limit (timeout_s = 0).
 */
#include "common.pml"
#ifndef STEPS
#define STEPS 2
#endif
#ifndef EVENTS
#define EVENTS 2
#endif

#define MEMBER 0 /* RankBlock.condition */
#define CLOSED 1
#define FAILED 2

#define ARRIVED_IN_TIME 0 /* Failure.reason */
#define LATE 1
#define DIED 2
#define LEFT 3
#define HAS_FAILED 4

#define OK 0 /* status.py */
#define LOST_PEER 1
#define TIMED_OUT 2
#define DISAGREE 3
#define INTERRUPTED 4
#define WENT_AWAY 5  /* the rank closed before the last step of the others */
#define NO_OUTCOME 9 /* the rank has not ended: it died, never arrives, or waits for ever */

byte arrived[R * 2];
bit signature[R * 2];   /* Cell.signature: the call of a rank in a step */
byte condition[R];
bit lock[R] = 1;   /* the record lock, which the operating system drops at death */
bit changed[R] = 1; /* something has happened since this rank began its last poll */
bit died[R];       /* ghost */
bit stays_away[R]; /* ghost: the rank lives and never arrives */
byte outcome[R] = NO_OUTCOME; /* ghost */
byte events = EVENTS;
bit trouble;       /* ghost: something bad has happened */
bit time_is_up;

#define HAS_ARRIVED(rank) (arrived[CELL(rank, g)] == g)

/* Arrivals need not be told, because a poll does not find more after an arrival. */
inline tell_all() {
    changed[0] = 1;
    changed[1] = 1;
#if R > 2
    changed[2] = 1
#endif
}

inline happen() { events--; trouble = 1 }

/* A death shows only in a free lock and in stores that are missing. So it is enough that a rank can
 * die before each of its stores, and at any moment while it waits.
 */
#define OR_DIES \
    :: atomic { events > 0 -> happen(); died[me] = 1; lock[me] = 0; tell_all() }; goto end

/* wait._why_missing: puts DIED, LEFT, HAS_FAILED or ARRIVED_IN_TIME into `why` */
inline why_missing(rank) {
#ifndef FAULT_NO_CONDITION
    seen = condition[rank];
#endif
    if
    :: seen == CLOSED -> why = LEFT
    :: seen == FAILED -> why = HAS_FAILED
#ifndef FAULT_NO_LOCK
    :: seen == MEMBER ->
        if
        :: !lock[rank] ->
#ifndef FAULT_ONE_REASON /* a condition stored before the lock is dropped can be read afterwards */
            seen = condition[rank];
#endif
            why = (seen == MEMBER -> DIED : (seen == CLOSED -> LEFT : HAS_FAILED))
        :: else
        fi
#endif
    :: else
    fi;
    seen = 0;
#ifndef FAULT_NO_SECOND_LOOK
    if
    :: why == ARRIVED_IN_TIME
    :: why != ARRIVED_IN_TIME ->
        if
        :: HAS_ARRIVED(rank) -> why = ARRIVED_IN_TIME
        :: else
        fi
    fi
#endif
}

/* A rank that is named as lost has been lost, and has not arrived at this step. */
inline check_reason(rank) {
    assert(!HAS_ARRIVED(rank));
    assert(why != DIED || !lock[rank]);
    assert(why != LEFT || condition[rank] == CLOSED);
    assert(why != HAS_FAILED || condition[rank] == FAILED);
    assert(why != DIED || condition[rank] == MEMBER); /* a rank that told its reason is not dead */
}

/* wait.look_around_kernel: puts OK, LOST_PEER or TIMED_OUT into `status` */
inline look_around(overdue) {
    do
    :: other == me -> other++
    :: other != me && other < R ->
        if :: !HAS_ARRIVED(other) -> why_missing(other) :: else fi;
        if
        :: why == ARRIVED_IN_TIME && overdue ->
            if :: !HAS_ARRIVED(other) -> late = 1 :: else fi
        :: why != ARRIVED_IN_TIME -> d_step { check_reason(other); lost = 1; why = 0 }
        :: else
        fi;
        other++
    :: other != me && other == R -> break
    od;
    atomic { other = 0; status = (lost -> LOST_PEER : (late -> TIMED_OUT : OK)) }
}

/* wait.wait_for, wait._wait_long */
inline wait_for(rank) {
    do
    :: HAS_ARRIVED(rank) -> break
    OR_DIES
    :: atomic { !HAS_ARRIVED(rank) && events > 0 -> happen(); status = INTERRUPTED; break }
#ifndef FAULT_NO_LOOK
    :: atomic { !HAS_ARRIVED(rank) && changed[me] && (trouble || events > 0) -> changed[me] = 0 };
        look_around(false);
        if :: status != OK -> break :: else fi
#endif
#if defined(DEADLINE) && !defined(FAULT_NO_DEADLINE)
    :: atomic {
            !HAS_ARRIVED(rank) && (events > 0 || time_is_up) ->
            if :: time_is_up :: else -> happen() fi
        };
        look_around(true);
        if :: status != OK -> break :: else fi
#endif
    od
}

/* step.await_all with step.await_rank; allgatherv._chunk does the same */
inline await_all() {
    awaited = NEXT(me);
    worst = OK;
    status = OK;
    do
    :: awaited != me && status == OK ->
        wait_for(awaited);
        if
#ifndef FAULT_NO_AGREEMENT
        :: status == OK && signature[CELL(awaited, g)] != signature[CELL(me, g)] -> worst = DISAGREE
#endif
        :: else
        fi;
        awaited = NEXT(awaited)
    :: else -> break
    od;
    if :: status == OK -> status = worst :: else fi;
    worst = 0
}

/* step.announce */
inline announce(what) {
    if
    :: atomic { condition[me] = what; tell_all() }
    OR_DIES
    fi
}

active [R] proctype rank() {
    byte me = _pid;
    byte g = 1;
    byte awaited, other, seen, why, status, worst;
    bit lost, late;

    do
    :: g <= STEPS ->
        if /* what happens between two collectives */
        :: skip
        :: atomic { events > 0 -> happen(); outcome[me] = WENT_AWAY }; goto close
        :: atomic { events > 0 -> happen(); stays_away[me] = 1 };
            if
            :: goto end
            OR_DIES
            fi
        OR_DIES
        fi;
        atomic { /* step.publish; in the last step a rank may call something else */
            if
            :: signature[CELL(me, g)] = 0
            :: g == STEPS && events > 0 -> events--; signature[CELL(me, g)] = 1
            fi;
            arrived[CELL(me, g)] = g
        };
        await_all();
        if
        :: status != OK -> goto failed
        :: else
        fi;
        d_step { /* a step succeeds only if all ranks have entered it with the same call */
            do
            :: other < R ->
                assert(arrived[CELL(other, g)] == g);
                assert(signature[CELL(other, g)] == signature[CELL(me, g)]);
                other++
            :: else -> break
            od;
            other = 0
        };
        g++
    :: else -> break
    od;
    outcome[me] = OK;
close: /* ShmBackend.close */
    announce(CLOSED);
    atomic { lock[me] = 0; tell_all() };
    goto end;
failed: /* guard.fail_kernel: the rank lives on and keeps its lock, or ends at some moment */
    assert(status != LOST_PEER || lost); /* the error names a rank */
    assert(status != TIMED_OUT || late);
    outcome[me] = status;
    lost = 0;
    late = 0;
#ifndef FAULT_SILENT
    announce(FAILED);
#endif
    if
    :: skip
    :: atomic { lock[me] = 0; tell_all() }
    fi;
end:skip
}

active proctype quiet() { /* after some moment nothing bad happens any more */
    atomic { events > 0 -> events = 0 }
}

/* Runs when nothing can happen any more. */
active proctype last() {
    byte its, away;

#ifdef DEADLINE
    timeout -> time_is_up = 1;
#endif
    timeout;
    d_step {
        do
        :: its < R -> away = away + stays_away[its]; its++
        :: else -> break
        od;
        its = 0;
        do
        :: its < R ->
            /* Every live rank has an outcome, unless it may wait without a limit for a live rank. */
#ifdef DEADLINE
            assert(outcome[its] != NO_OUTCOME || died[its] || stays_away[its]);
#else
            assert(outcome[its] != NO_OUTCOME || died[its] || stays_away[its] || away > 0);
            assert(outcome[its] != TIMED_OUT);
#endif
            /* No rank fails without a cause, and all ranks, or none, know of a disagreement. */
            assert(trouble || outcome[its] == OK || outcome[its] == DISAGREE);
            assert(trouble || outcome[its] == outcome[0]);
            its++
        :: else -> break
        od
    }
}
