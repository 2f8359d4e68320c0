"""Four ranks on two machines reduce an array inside their compiled loops."""

from docs.figures.canvas import Canvas

RANKS = 4
WIDTH = 150  # of a rank's box
GAP = 180  # from a rank to the next one


def draw():
    """Return the figure."""
    c = Canvas(740, 292, "Four ranks on two machines; allreduce gives each the sum of all arrays")
    for machine in range(2):
        x = 11 + 2 * GAP * machine
        c.box(x, 34, 2 * GAP - 10, 250, kind="frame")
        c.text(x + GAP - 5, 24, f"machine {machine}: shared memory", "title")
    for rank in range(RANKS):
        x = 21 + GAP * rank
        c.box(x, 48, WIDTH, 60, f"rank {rank}: @njit loop\nbound = [{rank}.0]", "first")
        c.arrow(x + WIDTH / 2, 108, x + WIDTH / 2, 138)
        c.arrow(x + WIDTH / 2, 180, x + WIDTH / 2, 210)
        c.box(x, 212, WIDTH, 60, f"next iteration\ntotal = [{sum(range(RANKS))}.0]", "second")
    words = (
        "comm.allreduce(bound, total): 0 + 1 + 2 + 3 in rank order, by sockets or MPI in between"
    )
    c.box(21, 140, 3 * GAP + WIDTH, 40, words, "good")
    return c
