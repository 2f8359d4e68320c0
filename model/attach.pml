/* The rendezvous in a named segment: rendezvous.py, header.py, ownership.remove_stale.
 *
 * Up to two jobs use one name, one after the other. In the first job up to DEATHS ranks die, at any
 * moment. If all processes of the first job have ended before all have attached, the second job
 * starts. Nothing goes wrong in the second job, so all its ranks must attach, no matter what the
 * first job has left.
 *
 * A poll that would see the same as the poll before is left out: `changed` says whether anything has
 * happened since the poll before began. With -DDEADLINE the limit of a rank of the first job may
 * pass at any poll; without -DDEADLINE it never passes (timeout_s = 0). The limit of a rank of the
 * second job never passes.
 */
#include "common.pml"
#ifndef DEATHS
#define DEATHS 1
#endif
#define SEGMENTS 2
#define NO_NAME 255

#define EMPTY 0      /* Control.published of a file of no bytes */
#define UNFINISHED 1
#define MAGIC 2

#define RUNNING 0
#define ATTACHED 1
#define RAISED 2 /* InitializationFailed */
#define DEAD 3

#define LOCK(segment, rank) lock[(segment) * R + (rank)] /* ownership.is_locked */
#define PID(segment, rank) registered[(segment) * R + (rank)]

byte name = NO_NAME; /* the segment to which the name in /dev/shm leads */
byte made;           /* how many segments have been made */
byte published[SEGMENTS];
bit whole[SEGMENTS];  /* whether the segment has its full length */
bit header[SEGMENTS]; /* whether VERSION, SIZE, BUFFER_BYTES are valid */
bit lock[SEGMENTS * R];
bit registered[SEGMENTS * R];
bit ready[SEGMENTS];  /* Control.ready */

byte job = 1; /* 1: the first job, 2: the second job */
byte ending[R];  /* RUNNING, then how the rendezvous, or the rank itself, has ended */
byte attached_to[R];     /* ghost: the segment to which a rank has attached */
bit changed[R];
byte deaths = DEATHS;
bit trouble;     /* ghost: a rank died */

inline tell_all() {
    changed[0] = 1;
    changed[1] = 1;
#if R > 2
    changed[2] = 1
#endif
}

/* The operating system drops the locks of a process that ends, or that closes the file. */
inline drop_locks(rank) {
    LOCK(0, rank) = 0;
    LOCK(1, rank) = 0
}

#define UNLESS_DEAD if :: ending[me] == DEAD -> goto gone :: else fi

#ifdef DEADLINE
#define LIMIT_MAY_PASS (job == 1)
#else
#define LIMIT_MAY_PASS false
#endif

/* segment.create_named, ownership.take_ownership and segment.reserve: put the segment into `segment`,
 * or NO_NAME if the name is taken (O_EXCL)
 */
inline create() {
    atomic {
        UNLESS_DEAD;
        if
#ifdef FAULT_NO_EXCL
        :: name != NO_NAME -> segment = name
#else
        :: name != NO_NAME -> segment = NO_NAME
#endif
        :: else ->
            segment = made;
            made++;
            name = segment;
            tell_all()
        fi
    };
    if
    :: segment != NO_NAME ->
        atomic { UNLESS_DEAD; LOCK(segment, 0) = 1; tell_all() };
        atomic { UNLESS_DEAD; published[segment] = UNFINISHED; tell_all() };
        atomic { UNLESS_DEAD; whole[segment] = 1; tell_all() }
    :: else
    fi
}

/* ownership.remove_stale. No other process creates or removes the same name meanwhile. */
inline remove_stale() {
#ifdef FAULT_KEEP_STALE
    goto failed;
#else
    found = name;
    if
    :: found == NO_NAME
    :: found != NO_NAME ->
        if :: LOCK(found, 0) -> goto failed :: else fi; /* in use */
#ifdef FAULT_EMPTY_IS_FOREIGN /* _is_ours; a file of no bytes holds no data */
        if :: published[found] == EMPTY -> goto failed :: else fi;
#endif
        atomic { UNLESS_DEAD; name = NO_NAME; tell_all() }
    fi;
    found = 0
#endif
}

inline unlink() {
#ifdef FAULT_NO_UNLINK
    skip
#else
    atomic { UNLESS_DEAD; name = NO_NAME; tell_all() }
#endif
}

/* rendezvous._await_followers: all_registered, again and again */
inline await_followers() {
    do
    :: absent = 0;
        other = 1;
        do
        :: other < R -> absent = absent | (PID(segment, other) == 0 -> (1 << other) : 0); other++
        :: else -> break
        od;
        other = 1;
        do
        :: other < R ->
            if
            :: (absent & (1 << other)) == 0 && !LOCK(segment, other) ->
                broken = 1; /* the rank has attached, then ended */
                break
            :: else
            fi;
            other++
        :: else -> break
        od;
        other = 0;
        if
        :: broken -> break
        :: !broken && absent == 0 -> break
        :: else
        fi;
        if
        :: atomic { changed[me] -> changed[me] = 0 }
        :: LIMIT_MAY_PASS -> broken = 1; break
        :: ending[me] == DEAD -> goto gone
        fi
    od;
    absent = 0
}

active proctype leader() {
    byte me = 0;
    byte segment, found, other, absent;
    bit broken;

begin:
    changed[me] = 0;
    create(); /* rendezvous._create_or_replace */
    if
    :: segment == NO_NAME ->
        remove_stale();
        create();
        if :: segment == NO_NAME -> goto failed :: else fi
    :: else
    fi;
    /* rendezvous._lead */
#ifdef FAULT_PUBLISH_EARLY
    atomic { UNLESS_DEAD; published[segment] = MAGIC; tell_all() };
    atomic { UNLESS_DEAD; header[segment] = 1 };
#else
    atomic { UNLESS_DEAD; header[segment] = 1 };
    atomic { UNLESS_DEAD; published[segment] = MAGIC; tell_all() };
#endif
    await_followers();
#ifdef FAULT_READY_FIRST
    if
    :: !broken -> atomic { UNLESS_DEAD; ready[segment] = 1; tell_all() }
    :: else
    fi;
#endif
    unlink();
    if
    :: broken -> goto failed
    :: else
    fi;
    atomic { UNLESS_DEAD; ready[segment] = 1; tell_all(); attached_to[0] = segment; ending[0] = ATTACHED };
    goto gone;
failed:
    atomic {
        UNLESS_DEAD;
        ending[0] = RAISED;
#ifndef FAULT_KEEPS_LOCK /* the fault: the process lives on, and its descriptor stays open */
        drop_locks(0);
#endif
        tell_all()
    };
gone: /* until the second job starts */
    atomic { job == 2 && ending[0] == RUNNING -> other = 0; absent = 0; broken = 0; goto begin }
}

/* rendezvous._try_attach up to register: puts the segment, or NO_NAME if something is missing, into
 * `segment`
 */
inline try_attach() {
    segment = name; /* segment.open_named */
    if
    :: segment == NO_NAME
    :: segment != NO_NAME ->
        if
#ifndef FAULT_ANY_OWNER
        :: !whole[segment] -> segment = NO_NAME
        :: whole[segment] && !LOCK(segment, 0) -> segment = NO_NAME
#endif
        :: else -> /* header.is_published */
            if
            :: published[segment] == MAGIC ->
                assert(whole[segment]);
                assert(header[segment]) /* a rank reads the header only when it is valid */
            :: published[segment] != MAGIC -> segment = NO_NAME
            fi
        fi
    fi
}

/* header.register */
inline register() {
#ifdef FAULT_LATE_LOCK
    atomic { UNLESS_DEAD; PID(segment, me) = 1; tell_all() };
#endif
    atomic {
        UNLESS_DEAD;
        assert(!LOCK(segment, me));
        LOCK(segment, me) = 1;
        tell_all()
    };
#ifndef FAULT_LATE_LOCK
    if :: PID(segment, me) != 0 -> goto failed :: else fi; /* already attached */
    atomic { UNLESS_DEAD; PID(segment, me) = 1; tell_all() };
#endif
    do /* rendezvous._await_ready: is_ready, again and again */
    :: if :: ready[segment] -> break :: else fi;
#ifndef FAULT_NO_LOOK
        if
        :: !LOCK(segment, 0) -> /* rank 0 has ended; perhaps after it said READY */
#ifndef FAULT_NO_SECOND_LOOK
            if :: ready[segment] -> break :: else -> assert(!ready[segment]); goto failed fi
#else
            assert(!ready[segment]); /* no rank gives up a communicator that has begun */
            goto failed
#endif
        :: else
        fi;
#endif
        if
        :: atomic { changed[me] -> changed[me] = 0 }
        :: LIMIT_MAY_PASS -> goto failed
        :: ending[me] == DEAD -> goto gone
        fi
    od
}

active [R - 1] proctype follower() {
    byte me = _pid;
    byte segment;

begin: /* rendezvous._follow */
    changed[me] = 0;
    do
    :: try_attach();
        if
        :: segment != NO_NAME -> break
        :: else
        fi;
        if
        :: atomic { changed[me] -> changed[me] = 0 }
        :: LIMIT_MAY_PASS -> goto failed
        :: ending[me] == DEAD -> goto gone
        fi
    od;
    register();
    atomic { UNLESS_DEAD; attached_to[me] = segment; ending[me] = ATTACHED; tell_all() };
    goto gone;
failed:
    atomic { UNLESS_DEAD; ending[me] = RAISED; drop_locks(me); tell_all() };
gone: /* until all ranks of this job have ended */
    atomic { job == 2 && ending[me] == RUNNING -> goto begin }
}

active proctype killer() {
    byte victim;

    do
    :: atomic {
        job == 1 && deaths > 0 ->
        select (victim : 0 .. (R - 1));
        if
        :: ending[victim] != DEAD ->
            /* A crash after READY leaves no name. */
            assert(!(ready[0] && name == 0) && !(ready[1] && name == 1));
            deaths--;
            trouble = 1;
            ending[victim] = DEAD;
            drop_locks(victim);
            tell_all()
        :: else
        fi;
        victim = 0
    }
    :: job == 1 && deaths > 0 -> deaths = 0 /* no more ranks will die */
    od
}

/* A rank of the first job may wait without a limit for a peer that may still arrive. */
#define IS_AWAITED(rank) (PID(0, rank) == 0 && ending[rank] != RUNNING)
#if R > 2
#define LEADER_MAY_WAIT (IS_AWAITED(1) || IS_AWAITED(2))
#else
#define LEADER_MAY_WAIT IS_AWAITED(1)
#endif
#define FOLLOWER_MAY_WAIT(rank) (PID(0, rank) -> ending[0] == RUNNING : ending[0] != ATTACHED)

inline check_job() {
    d_step {
        its = 0;
        do
        :: its < R ->
            if
            :: ending[its] == ATTACHED ->
                /* All ranks have met in one segment, and the name of the segment is gone. */
                assert(name == NO_NAME);
                assert(attached_to[its] == made - 1 && ready[attached_to[its]]);
                assert(LOCK(attached_to[its], its));
                assert(PID(attached_to[its], 1) && PID(attached_to[its], R - 1))
            :: ending[its] == RUNNING ->
                all_ended = 0;
#ifdef DEADLINE
                assert(false)
#else
                assert(job == 1 && (its == 0 -> LEADER_MAY_WAIT : FOLLOWER_MAY_WAIT(its)))
#endif
            :: else ->
                assert(job == 1); /* the second job meets, no matter what the first job has left */
                all_well = 0;
#ifndef DEADLINE
                assert(trouble) /* no rank gives up without a cause */
#endif
            fi;
            its++
        :: else -> break
        od;
        its = 0;
        assert(name == NO_NAME || ending[0] == DEAD || !all_ended)
    }
}

/* Runs when nothing can happen any more in a job. */
active proctype last() {
    byte its;
    bit all_ended = 1;
    bit all_well = 1;

    timeout;
    check_job();
    if
    :: all_ended && !all_well ->
        atomic {
            job = 2;
            do
            :: its < R ->
                drop_locks(its);
                ending[its] = RUNNING;
                its++
            :: else -> break
            od
        };
        timeout;
        check_job()
    :: else
    fi
}
