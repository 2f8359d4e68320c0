"""Stripes: each rank folds a part of a chunk, in rank order."""

from docs.figures.canvas import Canvas

RANKS = 3
KINDS = ("first", "second", "good")


def draw():
    """Return the figure."""
    c = Canvas(720, 330, "Each of three ranks folds one stripe of a chunk, in rank order")
    c.text(10, 22, "slots: what each rank contributes to the chunk", "title", "start")
    for rank in range(RANKS):
        y = 36 + 36 * rank
        c.text(10, y + 19, f"rank {rank}", anchor="start")
        for stripe in range(RANKS):
            c.box(75 + 205 * stripe, y, 195, 28, f"x{rank}", KINDS[stripe])
    for stripe in range(RANKS):
        x = 172 + 205 * stripe
        c.arrow(x, 146, x, 190)
        c.text(x + 8, 172, f"rank {stripe} folds", "small", "start")
        c.box(75 + 205 * stripe, 194, 195, 32, "(x0 + x1) + x2", KINDS[stripe])
    c.text(10, 215, "results", anchor="start")
    c.arrow(377, 232, 377, 264)
    c.text(385, 253, "a step later every rank copies all stripes", "small", "start")
    c.box(75, 268, 605, 32, "recv, the same bits on all ranks", "plain")
    return c
