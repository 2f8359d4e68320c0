/* Weak memory: a store waits in `unseen` and becomes visible to the other ranks when the process
 * `memory` of its rank pleases. Plain and relaxed stores become visible in any order; a release store
 * becomes visible after all that its rank stored before. In `unseen`, 0 says that no store waits,
 * because generations begin with 1.
 *
 * A model that includes this file says with STORED_BEFORE what precedes a release store.
 */

/* A plain store; the same rank's next store to the same word does not overtake it. */
#define STORE(word, unseen, value) atomic { unseen[word] == 0 -> unseen[word] = value }

/* What must be visible before a release store of this parity. */
#ifdef FAULT_RELAXED_STORE
#define RELEASED(rank, parity) true
#else
#define RELEASED(rank, parity) (STORED_BEFORE(rank, parity))
#endif

#define BECOMES_VISIBLE(when, word, shared, unseen) \
    d_step { unseen[word] != 0 && (when) -> shared[word] = unseen[word]; unseen[word] = 0 }
