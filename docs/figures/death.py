"""A rank dies: who sees it, how, and what everyone raises."""

from docs.figures.canvas import Canvas


def draw():
    """Return the figure."""
    c = Canvas(720, 280, "Rank 1 is killed; ranks 0 and 2 see its lock dropped and raise an error")
    for rank in range(3):
        y = 60 + 64 * rank
        c.text(10, y + 5, f"rank {rank}", "title", "start")
        c.line(70, y, 700 if rank != 1 else 250, y, "line dashed" if rank != 1 else "bad")
    c.box(90, 42, 130, 36, "enters step 7", "first")
    c.box(90, 106, 130, 36, "computes", "second")
    c.box(130, 170, 130, 36, "enters step 7", "first")
    c.box(250, 106, 110, 36, "SIGKILL", "bad")
    c.box(390, 106, 170, 36, "kernel drops its lock", "plain")
    c.arrow(360, 124, 388, 124, kind="bad")
    for y, x in ((42, 230), (170, 270)):
        c.box(x, y, 190 if y == 42 else 150, 36, "waits", "plain")
    c.arrow(500, 106, 520, 80, kind="bad")
    c.arrow(500, 142, 520, 168, kind="bad")
    for y in (42, 170):
        c.box(525, y, 185, 36, "CollectiveFailed: rank 1", "bad")
    c.text(70, 250, "time", "small", "start")
    c.arrow(105, 246, 700, 246)
    c.text(525, 236, "within 50 ms", "small", "start")
    return c
