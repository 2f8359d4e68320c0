/* Weak memory: a store waits in `unseen` and becomes visible to the other ranks when the process
 * `memory` of its rank pleases. Plain and relaxed stores come in any order; a release store comes
 * after all that its rank stored before. 0 is nothing: generations begin with 1.
 *
 * A model that includes this file says with STORED_BEFORE what precedes a release store.
 */

/* A plain store; the same rank's next store to the same place does not overtake it. */
#define STORE(place, unseen, value) atomic { unseen[place] == 0 -> unseen[place] = value }

/* What a release store of this parity waits for. */
#ifdef FAULT_RELAXED_STORE
#define RELEASED(rank, parity) true
#else
#define RELEASED(rank, parity) (STORED_BEFORE(rank, parity))
#endif

#define BECOMES_VISIBLE(when, place, shared, unseen) \
    d_step { unseen[place] != 0 && (when) -> shared[place] = unseen[place]; unseen[place] = 0 }
