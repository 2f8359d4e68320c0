/* Sleeping and waking: wait._sleep and step.publish, among ranks that live.
 *
 * In this model a sleep ends only by a wake-up. In the code a sleep ends after TICK_NS at the latest,
 * which would hide a lost wake-up as a delay of 50 ms. So the model has no tick, no signal and no
 * other spurious end of a sleep. A lost wake-up leaves a rank asleep for ever, which `last` finds.
 *
 * ARRIVED is stored to `unseen` first, and becomes visible when the process `memory` pleases. A
 * sequentially consistent store is visible before the sequentially consistent load that follows. A
 * release store may become visible after that load (a store buffer).
 */
#include "common.pml"
#ifndef STEPS
#define STEPS 5
#endif
#define NOWHERE 255

byte arrived[R * 2]; /* Cell.arrived, as the others and the operating system see it */
byte unseen[R];      /* a generation with an ARRIVED that is not visible yet; 0: there is none */
byte sleepers[R];    /* RankBlock.sleepers */
byte sleeps_on[R] = NOWHERE; /* the word on which a rank sleeps: a futex queue */

/* libc.futex_wake_all */
inline futex_wake_all(word) {
    d_step {
        sleeper = 0;
        do
        :: sleeper < R ->
            if
            :: sleeps_on[sleeper] == (word) ->
                sleeps_on[sleeper] = NOWHERE;
#ifdef FAULT_WAKE_ONE
                break
#endif
            :: else
            fi;
            sleeper++
        :: else -> break
        od;
        sleeper = 0
    }
}

inline store_arrived(g) {
    atomic { unseen[me] == 0 -> unseen[me] = g };
#ifndef FAULT_RELEASE_STORE
    unseen[me] == 0 /* seq_cst: this store is visible before any later seq_cst load */
#endif
}

/* step.publish */
inline publish(g) {
#ifdef FAULT_LOOK_FIRST
    seen = sleepers[me];
    store_arrived(g);
#else
    store_arrived(g);
    seen = sleepers[me]; /* load_seq_cst(SLEEPERS) */
#endif
    if
#ifndef FAULT_NO_WAKE
    :: seen != 0 ->
#ifdef FAULT_OTHER_WORD
        futex_wake_all(CELL(me, g + 1))
#else
        futex_wake_all(CELL(me, g))
#endif
#endif
    :: else
    fi;
    seen = 0
}

/* wait._sleep */
inline sleep_on(rank, g) {
#ifdef FAULT_LATE_SLEEPERS /* the sleeper looks at the flag, sleeps, and announces itself too late */
    seen = arrived[CELL(rank, g)];
    if
    :: seen != g ->
        atomic { if :: arrived[CELL(rank, g)] == seen -> sleeps_on[me] = CELL(rank, g) :: else fi };
        atomic { unseen[me] == 0 -> sleepers[rank]++ };
        sleeps_on[me] == NOWHERE
    :: else -> sleepers[rank]++
    fi;
#else
#ifndef FAULT_NO_SLEEPERS
    /* fetch_add is sequentially consistent: the stores of its rank are visible before it. */
    atomic { unseen[me] == 0 -> sleepers[rank]++ };
#endif
    seen = arrived[CELL(rank, g)]; /* load_seq_cst(ARRIVED) */
    if
    :: seen != g -> /* libc.futex_wait: the kernel compares and queues in one atomic step */
#ifdef FAULT_NO_COMPARE
        sleeps_on[me] = CELL(rank, g);
#else
        atomic { if :: arrived[CELL(rank, g)] == seen -> sleeps_on[me] = CELL(rank, g) :: else fi };
#endif
        sleeps_on[me] == NOWHERE
    :: else
    fi;
#endif
#ifndef FAULT_NO_SLEEPERS
    sleepers[rank]--;
#endif
    seen = 0
}

/* wait.wait_for: a rank that spins or yields sees the flag or gives up, at any moment. */
inline wait_for(rank, g) {
    do
    :: arrived[CELL(rank, g)] == g -> break
    :: arrived[CELL(rank, g)] != g -> sleep_on(rank, g)
    od
}

active [R] proctype rank() {
    byte me = _pid;
    byte g = 1;
    byte other, seen, sleeper;

    do
    :: g <= STEPS ->
        publish(g);
        other = NEXT(me); /* step.await_all */
        do
        :: other != me -> wait_for(other, g); other = NEXT(other)
        :: else -> break
        od;
        g++
    :: else -> break
    od
}

active [R] proctype memory() {
    byte its = _pid - R;

end:do
    :: d_step { unseen[its] != 0 -> arrived[CELL(its, unseen[its])] = unseen[its]; unseen[its] = 0 }
    od
}

/* When nothing can happen any more, all ranks have completed all steps, and no sleeper is counted. */
active proctype last() {
    byte its;

end:timeout;
    d_step {
        do
        :: its < R ->
            assert(sleeps_on[its] == NOWHERE);
            assert(arrived[CELL(its, STEPS)] == STEPS);
            its++
        :: else -> break
        od;
        its = 0;
        do
        :: its < R -> assert(sleepers[its] == 0); its++
        :: else -> break
        od
    }
}
