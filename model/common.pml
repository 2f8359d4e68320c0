/* What all models share. R is the number of ranks; check.py gives it. */
#ifndef R
#define R 2
#endif

/* wait.cell_of and slot.slot_of: a rank's cell, or slot, of a generation's parity. */
#define CELL(rank, generation) ((rank) * 2 + ((generation) & 1))

/* step.await_all goes round the ranks, beginning with the next one. */
#define NEXT(rank) (((rank) + 1) % R)
