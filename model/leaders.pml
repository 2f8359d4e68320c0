/* Leaders of nodes, in rounds: nodes/protocol.py, whose rows are in rows.pml, nodes/waiting.py,
 * nodes/round.py. A verb completes at a leader once all leaders have begun it, also if some of them
 * have left it meanwhile: so MPI does it, and so do bytes that are on their way in sockets. Where
 * leaders pass on what others send (tcp/hops.py), a leader that has left may keep the verb from
 * completing. Then its loss is fresh, and ends the wait: here too, a wait may end by a fresh loss
 * wherever it may complete.
 *
 * With -DBOUND no leader can leave a verb that moves data (`can_leave` is 0). Without it one may
 * die, which ends its links. The first round moves data, and the second one does not.
 *
 * EVENTS is how often something bad happens, to any leader, at any moment; one such thing is that a
 * leader's time runs out although the others may still come. When nothing else can happen any more,
 * every leader's time is up.
 */
#include "common.pml"
#include "rows.pml"
#ifndef EVENTS
#define EVENTS 2
#endif

#define OK 0
#define FAILED 1
#define AWAY 2       /* closed before its last round, or its node never comes in */
#define NO_OUTCOME 9 /* has not ended: it died, or it waits for ever */

byte state[R] = OUTSIDE;
byte begun[R];      /* verbs whose data, or header, a leader has given */
byte completed[R];
bit lost[R];        /* it has reported, or said goodbye; or its links have ended */
byte lost_at[R];    /* the verbs that it had completed, as far as the others know */
bit died[R];        /* ghost */
byte outcome[R] = NO_OUTCOME; /* ghost */
byte events = EVENTS;
bit trouble;        /* ghost: something bad has happened */
bit time_is_up;

#define ALLOWS(event) (LEADS(state[me], event) != NOTHING)
#define IS_FRESH(other) (lost[other] && lost_at[other] < verb)
#if R > 2
#define HAVE_ALL_BEGUN (begun[0] >= verb && begun[1] >= verb && begun[2] >= verb)
#define IS_ANY_FRESH (IS_FRESH(0) || IS_FRESH(1) || IS_FRESH(2))
#else
#define HAVE_ALL_BEGUN (begun[0] >= verb && begun[1] >= verb)
#define IS_ANY_FRESH (IS_FRESH(0) || IS_FRESH(1))
#endif

inline happen() { events--; trouble = 1 }

/* protocol.happen, of an event that a row allows */
inline go(event) {
    assert(ALLOWS(event));
    state[me] = LEADS(state[me], event)
}

/* messages._send_last: what it tells is final */
inline tell() { lost[me] = 1; lost_at[me] = completed[me] }

/* A leader that the table lets go leaves nothing behind that may still be written. */
inline leave(event) {
    assert(state[me] != COMMITTED);
    go(event);
    failed = 1;
    break
}

/* waiting.begin_verb, the wait, waiting.end_verb: leaves `failed` */
inline wait_in_verb() {
    verb++;
    if
    :: atomic { IS_ANY_FRESH && ALLOWS(FRESH_LOSS) -> go(FRESH_LOSS); failed = 1 }
    :: begun[me] = verb /* also where this leader has not read yet who is lost */
    fi;
    do
    :: failed -> break
    :: atomic { !failed && HAVE_ALL_BEGUN -> completed[me] = verb; break }
#ifdef FAULT_ALL_FRESH
    :: atomic { (lost[0] || lost[1]) && ALLOWS(FRESH_LOSS) ->
            assert(IS_ANY_FRESH);
            leave(FRESH_LOSS)
        }
#endif
#ifdef FAULT_STAY_PREPARED
    :: atomic { !failed && IS_ANY_FRESH && state[me] != PREPARED && ALLOWS(FRESH_LOSS) ->
#else
    :: atomic { !failed && IS_ANY_FRESH && ALLOWS(FRESH_LOSS) ->
#endif
            leave(FRESH_LOSS)
        }
    :: atomic { !failed && events > 0 && ALLOWS(SIGNAL) -> happen(); leave(SIGNAL) }
    :: atomic {
            !failed && (events > 0 || time_is_up) && ALLOWS(SILENCE) ->
            if :: time_is_up :: else -> happen() fi;
            go(OVERDUE);
            if :: leave(SILENCE) :: leave(NO_REPORT) fi
        }
    :: atomic { /* in the commit exchange it would keep the others COMMITTED: no leader can help it */
            !failed && events > 0 && ALLOWS(FAILURE) && state[me] != PREPARED ->
            happen(); go(FAILURE); failed = 1; break
        }
#ifndef BOUND
    :: atomic { !failed && events > 0 -> happen(); died[me] = 1; lost[me] = 1; lost_at[me] = 0 };
        goto end
#endif
    od
}

active [R] proctype leader() {
    byte me = _pid;
    byte verb, round;
    bit failed;

    do
    :: round < 2 ->
        round++;
        if
        :: skip
        :: atomic { events > 0 -> happen(); outcome[me] = AWAY; tell() }; goto end
        :: atomic { events > 0 -> happen(); outcome[me] = AWAY }; goto end
        fi;
        go(NODE_IS_IN);
#ifndef BOUND
        if
        :: round == 2 -> go(AGREED_BEFORE); goto data
        :: else
        fi;
#endif
        wait_in_verb();
        if
        :: failed -> goto failing
#ifdef BOUND
        :: !failed && round == 2 -> go(NO_DATA)
#endif
        :: else ->
#ifdef BOUND
            go(FINAL_DATA);
#ifndef FAULT_NO_COMMIT
            wait_in_verb();
            if :: failed -> goto failing :: else fi;
#endif
            go(ALL_COMMIT);
#else
            go(LEAVABLE_DATA);
#endif
data:       wait_in_verb();
            if :: failed -> goto failing :: else fi
        fi;
        go(OUTCOME)
    :: else -> break
    od;
    atomic { outcome[me] = OK; tell() }; /* goodbye */
    goto end;
failing:
    atomic {
        go(OUTCOME);
        outcome[me] = FAILED;
#ifndef FAULT_SILENT
        tell()
#endif
    };
end: skip
}

active proctype quiet() { /* from some moment on nothing happens any more */
    atomic { events > 0 -> events = 0 }
}

/* When nothing can happen any more. */
active proctype last() {
    byte its;

    timeout -> time_is_up = 1;
    timeout;
    d_step {
        do
        :: its < R ->
            assert(outcome[its] != NO_OUTCOME || died[its]); /* every wait ends */
            assert(trouble || outcome[its] == OK);           /* and none without a reason */
            its++
        :: else -> break
        od
    }
}
