"""Two parities: why step 9 may overwrite the cells and slots of step 7."""

from docs.figures.canvas import Canvas

NAMES = ("odd cells and slots", "even cells and slots")


def draw():
    """Return the figure."""
    c = Canvas(720, 250, "Steps 7, 8 and 9 use odd, even and odd cells")
    for row, name in enumerate(NAMES):
        y = 60 + 80 * row
        c.text(10, y + 25, name, anchor="start")
        c.line(160, y + 20, 700, y + 20, "line dashed")
    for number, x in ((7, 175), (8, 355), (9, 535)):
        odd = number % 2
        c.box(x, 60 if odd else 140, 155, 40, f"step {number}", "first" if odd else "second")
    c.arrow(330, 88, 355, 140)
    c.arrow(510, 152, 535, 100)
    c.text(432, 40, "all have entered 8, so nobody reads 7 any more", "small")
    c.arrow(432, 46, 552, 60, kind="dashed")
    c.text(10, 225, "time", "small", "start")
    c.arrow(45, 221, 700, 221)
    return c
