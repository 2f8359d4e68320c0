"""One step of shared memory: cells, slots, and who writes and reads them."""

from docs.figures.canvas import Canvas

RANKS = 3


def draw():
    """Return the figure."""
    c = Canvas(720, 300, "Three ranks, each with a cell and a slot that it alone writes")
    for rank in range(RANKS):
        x = 10 + 240 * rank
        late = rank == 2
        c.box(x, 20, 215, 46, f"rank {rank}", "first" if not late else "second")
        c.arrow(x + 107, 66, x + 107, 108, kind="first" if not late else "second")
        c.text(x + 115, 92, "writes", "small", "start")
        c.text(x, 124, "cell", "title", "start")
        c.box(x, 132, 75, 30, "6 -> 7" if late else "7", "word")
        c.box(x + 75, 132, 140, 30, "allreduce, 4 f64", "word")
        c.text(x, 177, "arrived", "small", "start")
        c.text(x + 75, 177, "what was called, data", "small", "start")
        c.text(x, 206, "slot", "title", "start")
        c.box(x, 214, 215, 30, "payload of step 7", "word")
    c.text(360, 275, "Every rank reads all cells, and the slots of the others, once all hold 7.")
    return c
