/* The roll calls of survivors on several nodes, by a chair: tcp/council.py and tcp/chair.py.
 *
 * Each rank answers CALLS calls and returns. ANSWER, ROLL, HELD, DECIDED follow each other on a link, so
 * a link carries one message at a time. What a rank has sent before its end may arrive, or not.
 *
 * EVENTS is how often a rank dies, at any moment. With -DCUT the network falls into two parts, in any
 * way, at any moment. From then on a rank may find any rank of the other part unreachable, and end its
 * link to that rank. The rank need not do this, and what is sent may still arrive, so some runs are
 * those of a network that heals. With -DDEADLINE the time of one rank may run out while all ranks live.
 * When nothing else can happen any more, the time of every rank runs out.
 */
#include "common.pml"
#ifndef CALLS
#define CALLS 2
#endif
#ifndef EVENTS
#define EVENTS 2
#endif

#define ALL ((1 << R) - 1)
#define BIT(rank) (1 << (rank))
#define NOBODY 15
#define NO_CHAIR 0 /* in an answer, instead of the chair's rank + 1 */

#define EMPTY 0
#define ANSWER 1
#define ROLL 2
#define HELD 3
#define DECIDED 4

#define GOES_ON 0 /* the bits above the ranks of a roll; a whole value of 0 is no roll */
#define TIME_OVER 16
#define TOO_SMALL 32
#define RANKS_OF(roll) ((roll) & 15)
#define HOW(roll) ((roll) & 48)

#define NO_OUTCOME 0
#define RETURNED 1
#define RAISED 2

bit lives[R] = 1;
bit port[R] = 1;         /* whether the rank listens */
byte to[R] = NOBODY;     /* the chair to which a member's link goes */
bit link[R];             /* whether this link is open */
byte wire[R];            /* the message on the link, and the content of the message */
byte of_call[R];
byte with_roll[R];
byte of_chair[R];
bit was_parted[R];       /* in DECIDED: whether the chair could not reach some rank */
byte part = ALL;         /* the ranks of one part */
byte outcome[R];         /* ghost */
byte taken[R * CALLS];   /* ghost: for each call, the roll with which a rank has continued */
byte events = EVENTS;
bit trouble;             /* ghost: something bad has happened */
#ifdef DEADLINE
bit time_is_up;
byte late_ones = 1;      /* how often a time may run out although all ranks live */
#endif

#define TAKEN(rank, call) taken[(rank) * CALLS + (call) - 1]
#define HAS(set, rank) (((set) & BIT(rank)) != 0)
#define IS_CUT(a, b) (HAS(part, a) != HAS(part, b))
#define COUNT(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1))
#ifdef FAULT_ANY_PART
#define MAY_GO_ON(set) true
#elif defined(FAULT_ANY_HALF)
#define MAY_GO_ON(set) (2 * COUNT(set) >= R)
#else
#define MAY_GO_ON(set) (2 * COUNT(set) > R || (2 * COUNT(set) == R && HAS(set, 0)))
#endif

#define OR_DIES \
    :: atomic { events > 0 -> events--; trouble = 1; lives[me] = 0; port[me] = 0; close_links() }; goto end

/* Close the links to this rank, and the rank's own link. */
inline close_links() {
    link[me] = 0;
    if :: to[0] == me -> link[0] = 0 :: else fi;
    if :: to[1] == me -> link[1] = 0 :: else fi;
#if R > 2
    if :: to[2] == me -> link[2] = 0 :: else fi;
#endif
#if R > 3
    if :: to[3] == me -> link[3] = 0 :: else fi;
#endif
    skip
}

#define AWAITED (members & ~(BIT(me) | gone | unreachable))
#define LISTENS(m) (HAS(answered, m) && answered_call[m] == call && link[m] && to[m] == me)
#ifdef FAULT_NO_HELD
#define HOLDS(m) true
#else
#define HOLDS(m) HAS(holders, m)
#endif
#define SAYS(m) (to[m] == me && leads)

/* What council._hear, _hand_over and _watch do for one member while the chair waits. */
#define SERVE(m) \
    :: atomic { SAYS(m) && wire[m] == ANSWER && of_call[m] >= call -> \
            wire[m] = EMPTY; answered_call[m] = of_call[m]; answered = answered | BIT(m); \
            its_roll[m] = with_roll[m]; its_chair[m] = of_chair[m] } \
    BEHIND(m) \
    :: atomic { SAYS(m) && wire[m] == HELD && answered_call[m] == call -> \
            wire[m] = EMPTY; holders = holders | BIT(m) } \
    :: atomic { HAS(AWAITED, m) && !port[m] -> gone = gone | BIT(m) } \
    :: atomic { HAS(AWAITED, m) && IS_CUT(me, m) -> unreachable = unreachable | BIT(m) } \
    :: atomic { SAYS(m) && link[m] && IS_CUT(me, m) -> link[m] = 0 }
#ifdef FAULT_NOT_AGAIN
#define BEHIND(m)
#else
#define BEHIND(m) \
    :: atomic { SAYS(m) && link[m] && wire[m] == ANSWER && of_call[m] < call -> \
            wire[m] = ROLL; with_roll[m] = before } \
    :: atomic { SAYS(m) && link[m] && wire[m] == HELD && answered_call[m] < call -> \
            wire[m] = DECIDED; was_parted[m] = unreachable != 0 }
#endif
#if R == 2
#define SERVE_ALL SERVE(0) SERVE(1)
#elif R == 3
#define SERVE_ALL SERVE(0) SERVE(1) SERVE(2)
#else
#define SERVE_ALL SERVE(0) SERVE(1) SERVE(2) SERVE(3)
#endif

#ifdef DEADLINE
#define OR_TIME_IS_OVER(then) \
    :: atomic { late_ones > 0 || time_is_up -> \
            if :: time_is_up :: else -> late_ones--; trouble = 1 fi; then }
#else
#define OR_TIME_IS_OVER(then)
#endif

/* council._lead: puts the decided roll into `roll` */
inline lead() {
    leads = 1;
    in_time = 1;
    do
    :: atomic { (AWAITED & ~answered) == 0 -> break }
    SERVE_ALL
    OR_TIME_IS_OVER(in_time = 0; break)
    OR_DIES
    od;
    atomic { /* the roll of the latest chair, from a member that is not ahead; or a new roll */
        m = 0;
        ahead = 0;
        fresh = BIT(me);
        do
        :: m < R ->
            if
            :: HAS(answered, m) && answered_call[m] > call -> ahead = ahead | BIT(m)
            :: HAS(answered, m) && answered_call[m] == call ->
#ifndef FAULT_NEW_ROLL
                if :: its_chair[m] > own_chair -> own_chair = its_chair[m]; own = its_roll[m] :: else fi;
#endif
                fresh = fresh | BIT(m)
            :: else
            fi;
            m++
        :: else -> break
        od;
        m = 0;
#ifndef FAULT_BEHIND_GOES_ON
        if :: ahead && own_chair == NO_CHAIR -> goto raise :: else fi;
#endif
        if
        :: own_chair == NO_CHAIR ->
            own = fresh | (in_time && !overdue -> GOES_ON : TIME_OVER);
            if :: unreachable && !MAY_GO_ON(fresh) -> own = fresh | TOO_SMALL :: else fi
        :: own_chair != NO_CHAIR && !in_time -> unreachable = unreachable | (AWAITED & ~answered)
        :: else
        fi;
        own_chair = me + 1;
        holders = ahead;
        fresh = 0;
        ahead = 0
    };
    do /* send ROLL to all members that listen */
    :: m < R ->
        if
        :: atomic { LISTENS(m) -> wire[m] = ROLL; with_roll[m] = own; m++ }
        :: atomic { !LISTENS(m) -> m++ }
        OR_DIES
        fi
    :: else -> break
    od;
    m = 0;
#ifndef FAULT_NO_HELD
    do
    :: atomic { (AWAITED & answered & ~holders) == 0 -> break }
    SERVE_ALL
    OR_TIME_IS_OVER(unreachable = unreachable | (answered & ~holders & ~gone); break)
    OR_DIES
    od;
    if :: unreachable && !MAY_GO_ON(holders | BIT(me)) -> goto raise :: else fi;
#endif
    do /* send DECIDED to all members that hold the roll */
    :: m < R ->
        if
        :: atomic { LISTENS(m) && HOLDS(m) ->
                wire[m] = DECIDED; was_parted[m] = unreachable != 0; m++ }
        :: atomic { LISTENS(m) && !HOLDS(m) -> link[m] = 0; m++ } /* this member gets no more messages */
        :: atomic { !LISTENS(m) -> m++ }
        OR_DIES
        fi
    :: else -> break
    od;
    atomic {
        m = 0;
        holders = 0;
        answered = 0;
        do /* answers to the next call that have arrived already */
        :: m < R ->
            if
            :: answered_call[m] > call -> answered = answered | BIT(m)
            :: answered_call[m] <= call -> its_roll[m] = 0; its_chair[m] = 0
            fi;
            m++
        :: else -> break
        od;
        m = 0;
        roll = own;
        in_time = 0
    }
}

/* council._find_out_about: the link to the chair has ended */
inline find_out() {
    if
    :: !port[chair] -> gone = gone | BIT(chair)
    :: port[chair] -> unreachable = unreachable | BIT(chair)
    fi
}

/* council._follow: puts the decided roll, or 0, into `roll` */
inline follow() {
    if
    :: atomic { to[me] != chair && !port[chair] -> gone = gone | BIT(chair); goto next }
    :: atomic { to[me] != chair && IS_CUT(me, chair) -> unreachable = unreachable | BIT(chair); goto next }
    :: atomic { to[me] != chair && port[chair] -> to[me] = chair; link[me] = 1; say(ANSWER) }
    :: atomic { to[me] == chair && link[me] -> say(ANSWER) }
    :: atomic { to[me] == chair && !link[me] -> find_out(); goto next }
    OR_DIES
    fi;
    do
    :: atomic { wire[me] == ROLL -> own = with_roll[me]; own_chair = chair + 1; with_roll[me] = 0 };
        if
        :: atomic { link[me] -> say(HELD) }
        :: !link[me]
        OR_DIES
        fi
    :: atomic { wire[me] == DECIDED -> wire[me] = EMPTY; roll = own;
            is_parted = is_parted | was_parted[me]; was_parted[me] = 0; break }
    :: atomic { !link[me] -> wire[me] = EMPTY; find_out(); break }
    :: atomic { link[me] && IS_CUT(me, chair) -> link[me] = 0; wire[me] = EMPTY; find_out(); break }
    OR_TIME_IS_OVER(link[me] = 0; wire[me] = EMPTY; overdue = overdue | BIT(chair); break)
    OR_DIES
    od;
next: skip
}

inline say(what) {
    wire[me] = what;
    of_call[me] = call;
    of_chair[me] = own_chair;
    with_roll[me] = (own_chair == NO_CHAIR -> 0 : own)
}

active [R] proctype rank() {
    byte me = _pid;
    byte call, members = ALL, gone, unreachable, overdue, chair, m;
    byte own, own_chair, before, roll;             /* own: the roll that this rank holds */
    byte answered, holders, ahead, fresh;
    byte answered_call[R], its_roll[R], its_chair[R];
    bit leads, in_time, is_parted;

    do
    :: call < CALLS ->
        atomic { call++; before = own; own = 0; own_chair = NO_CHAIR; roll = 0 };
        do
        :: roll == 0 ->
            atomic {
                chair = 0;
                do
                :: HAS(members & ~(gone | unreachable | overdue), chair) -> break
                :: else -> chair++
                od
            };
            if
            :: chair == me -> lead()
            :: else -> follow()
            fi
        :: else -> break
        od;
        atomic {
            if :: HOW(roll) != GOES_ON -> goto raise :: else fi;
#ifndef FAULT_WITHOUT_ITSELF
            if :: !HAS(roll, me) -> goto raise :: else fi;
#endif
            assert(HAS(roll, me)); /* a rank continues with a roll that has the rank, */
            do                     /* and no two live ranks continue with different rolls */
            :: m < R -> assert(!lives[m] || TAKEN(m, call) == 0 || TAKEN(m, call) == roll); m++
            :: else -> break
            od;
            m = 0;
            TAKEN(me, call) = roll;
            if :: call == 1 -> members = roll :: else fi
        }
    :: else -> break
    od;
    atomic {
        outcome[me] = RETURNED;
#ifndef FAULT_OPEN_PORT
#ifndef FAULT_CLOSES_PORT
        if :: is_parted || unreachable :: else -> port[me] = 0 fi;
#else
        port[me] = 0;
#endif
#endif
        close_links()
    };
    goto end;
raise:
    atomic { outcome[me] = RAISED; close_links() };
end: skip
}

#ifdef CUT
active proctype network() {
    atomic {
        trouble = 1;
        if
        :: part = 1
        :: part = 2
#if R > 2
        :: part = 4
#endif
#if R > 3
        :: part = 8 :: part = 3 :: part = 5 :: part = 9
#endif
        fi
    }
}
#endif

active proctype quiet() { /* after some moment nothing bad happens any more */
    atomic { events > 0 -> events = 0 }
}

/* Runs when nothing can happen any more. */
active proctype last() {
    byte its;

    timeout;
#ifdef DEADLINE
    time_is_up = 1;
    timeout;
#endif
    d_step {
        do
        :: its < R ->
#if !defined(CUT) || defined(DEADLINE)
            assert(outcome[its] != NO_OUTCOME || !lives[its]); /* every wait ends */
#endif
#if !defined(CUT) && !defined(DEADLINE)
            assert(outcome[its] != RAISED);                    /* no rank gives up without a cause */
#endif
            assert(trouble || (outcome[its] == RETURNED && TAKEN(its, CALLS) == ALL));
            its++
        :: else -> break
        od
    }
}
