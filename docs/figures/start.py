"""Four ranks on two machines reduce an array inside their compiled loops."""

from docs.figures.canvas import Canvas

RANKS = 4
WIDTH, HEIGHT = 134, 50  # of a rank's box
ROW = 60  # from a rank to the next one of its machine
MACHINE = 162  # from a machine to the next one


def draw():
    """Return the figure: time goes from left to right, so that it fits a narrow window."""
    c = Canvas(420, 330, "Four ranks on two machines; allreduce gives each the sum of all arrays")
    for machine in range(2):
        top = 34 + MACHINE * machine
        c.text(8, top - 10, f"machine {machine}", "title", "start")
        c.text(412, top - 10, "shared memory", "title", "end")
        c.box(6, top, 408, 128, kind="frame")
    for rank in range(RANKS):
        top = 43 + MACHINE * (rank // 2) + ROW * (rank % 2)
        c.box(16, top, WIDTH, HEIGHT, f"rank {rank}: @njit loop\nbound = [{rank}.0]", "first")
        c.arrow(16 + WIDTH, top + HEIGHT / 2, 168, top + HEIGHT / 2)
        c.arrow(252, top + HEIGHT / 2, 404 - WIDTH, top + HEIGHT / 2)
        total = f"next iteration\ntotal = [{sum(range(RANKS))}.0]"
        c.box(404 - WIDTH, top, WIDTH, HEIGHT, total, "second")
    c.box(170, 43, 80, 2 * MACHINE - 52, kind="good")
    places = (
        (98, "comm.\nallreduce(\nbound,\ntotal)"),
        (179, "by sockets\nor MPI"),
        (260, "0 + 1 + 2\n+ 3, in the\norder of\nranks"),
    )
    for middle, words in places:
        lines = words.split("\n")
        for number, line in enumerate(lines):
            c.text(210, middle + 4.5 + 15 * (number - (len(lines) - 1) / 2), line, "on-good small")
    return c
