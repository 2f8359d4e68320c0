/* The rows of kernels/cobre_kernels/nodes/protocol.py, written by `python -m tests.model.rows`. A
 * test compares the two.
 */
#define OUTSIDE 0
#define ENTERED 1
#define PREPARED 2
#define MOVING 3
#define COMMITTED 4
#define ENDED 5
#define NODE_IS_IN 0
#define AGREED_BEFORE 1
#define NO_DATA 2
#define LEAVABLE_DATA 3
#define FINAL_DATA 4
#define ALL_COMMIT 5
#define SIGNAL 6
#define FRESH_LOSS 7
#define OVERDUE 8
#define SILENCE 9
#define NO_REPORT 10
#define FAILURE 11
#define OUTCOME 12
#define NOTHING 255

/* Where an event leads, or NOTHING. */
#define LEADS(s, e) \
    ((s) == OUTSIDE && (e) == NODE_IS_IN -> ENTERED : \
    ((s) == ENTERED && (e) == AGREED_BEFORE -> MOVING : \
    ((s) == ENTERED && (e) == NO_DATA -> ENDED : \
    ((s) == ENTERED && (e) == LEAVABLE_DATA -> MOVING : \
    ((s) == ENTERED && (e) == FINAL_DATA -> PREPARED : \
    ((s) == PREPARED && (e) == ALL_COMMIT -> COMMITTED : \
    ((s) == ENTERED && (e) == SIGNAL -> ENDED : \
    ((s) == MOVING && (e) == SIGNAL -> ENDED : \
    ((s) == ENTERED && (e) == FRESH_LOSS -> ENDED : \
    ((s) == PREPARED && (e) == FRESH_LOSS -> ENDED : \
    ((s) == MOVING && (e) == FRESH_LOSS -> ENDED : \
    ((s) == ENTERED && (e) == OVERDUE -> ENTERED : \
    ((s) == MOVING && (e) == OVERDUE -> MOVING : \
    ((s) == ENTERED && (e) == SILENCE -> ENDED : \
    ((s) == MOVING && (e) == SILENCE -> ENDED : \
    ((s) == ENTERED && (e) == NO_REPORT -> ENDED : \
    ((s) == MOVING && (e) == NO_REPORT -> ENDED : \
    ((s) == ENTERED && (e) == FAILURE -> ENDED : \
    ((s) == PREPARED && (e) == FAILURE -> ENDED : \
    ((s) == MOVING && (e) == FAILURE -> ENDED : \
    ((s) == COMMITTED && (e) == FAILURE -> ENDED : \
    ((s) == ENTERED && (e) == OUTCOME -> OUTSIDE : \
    ((s) == PREPARED && (e) == OUTCOME -> OUTSIDE : \
    ((s) == MOVING && (e) == OUTCOME -> OUTSIDE : \
    ((s) == COMMITTED && (e) == OUTCOME -> OUTSIDE : \
    ((s) == ENDED && (e) == OUTCOME -> OUTSIDE : \
    NOTHING))))))))))))))))))))))))))
