/* Leaders of nodes, in rounds: nodes/protocol.py, whose rows are in rows.pml, nodes/waiting.py,
 * nodes/round.py. A verb completes at a leader when all leaders have begun the verb, even if some
 * leaders have left it meanwhile. MPI works in this way, and so do bytes on their way in sockets.
 * Where leaders pass on what others send (tcp/hops.py), a leader that has left may keep the verb from
 * completing. Then the loss of that leader is fresh, and ends the wait. So in this model too, a wait may
 * end by a fresh loss wherever the wait may complete.
 *
 * With -DBOUND no leader can leave a verb that moves data (`can_leave` is 0). Without -DBOUND a leader
 * may die, which ends its links. The first round moves data, and the second round does not.
 *
 * EVENTS is how often something bad happens, to any leader, at any moment; one such event is that a
 * leader's time runs out although the others may still arrive. When nothing else can happen any more,
 * every leader's time is up.
 */
#include "common.pml"
#include "rows.pml"
#ifndef EVENTS
#define EVENTS 2
#endif

#define OK 0
#define FAILED 1
#define AWAY 2       /* the leader closed before its last round, or its node never enters */
#define NO_OUTCOME 9 /* the leader has not ended: it died, or it waits for ever */

byte state[R] = OUTSIDE;
byte begun[R];      /* the verbs for which a leader has given its data or its header */
byte completed[R];
bit lost[R];        /* the leader has reported, or said goodbye, or its links have ended */
byte lost_at[R];    /* the verbs that the lost leader had completed, as the others know it */
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

/* protocol.happen, for an event that a row allows */
inline go(event) {
    assert(ALLOWS(event));
    state[me] = LEADS(state[me], event)
}

/* messages._send_last: the leader sends nothing after this */
inline tell() { lost[me] = 1; lost_at[me] = completed[me] }

/* If the table lets a leader leave, nobody may still write to the memory of this leader. */
inline leave(event) {
    assert(state[me] != COMMITTED);
    go(event);
    failed = 1;
    break
}

/* waiting.begin_verb, the wait, waiting.end_verb: `failed` says whether the verb failed */
inline wait_in_verb() {
    verb++;
    if
    :: atomic { IS_ANY_FRESH && ALLOWS(FRESH_LOSS) -> go(FRESH_LOSS); failed = 1 }
    :: begun[me] = verb /* even if this leader has not yet read which leader is lost */
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
    :: atomic { /* not in the commit exchange, which would leave the others COMMITTED */
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

active proctype quiet() { /* after some moment nothing bad happens any more */
    atomic { events > 0 -> events = 0 }
}

/* Runs when nothing can happen any more. */
active proctype last() {
    byte its;

    timeout -> time_is_up = 1;
    timeout;
    d_step {
        do
        :: its < R ->
            assert(outcome[its] != NO_OUTCOME || died[its]); /* every wait ends */
            assert(trouble || outcome[its] == OK);           /* and no wait fails without a cause */
            its++
        :: else -> break
        od
    }
}
