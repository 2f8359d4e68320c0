"""Two levels: shared memory within a node, messages between leaders."""

from figures.canvas import Canvas

NODES = 3
RANKS = 3


def draw():
    """Return the figure."""
    c = Canvas(720, 300, "Three nodes of three ranks; the leaders of nodes exchange messages")
    for node in range(NODES):
        x = 10 + 240 * node
        c.box(x, 60, 220, 185, kind="frame")
        c.text(x + 110, 262, f"node {node}", "title")
        c.box(x + 12, 170, 196, 50, "shared memory:\ncells, staging buffer", "plain")
        for k in range(RANKS):
            number = RANKS * node + k
            words = f"{number}\nleader" if k == 0 else f"{number}"
            c.box(x + 12 + 68 * k, 80, 60, 46, words, "first" if k == 0 else "second")
            c.arrow(x + 42 + 68 * k, 126, x + 42 + 68 * k, 168)
    c.arrow(52, 80, 290, 30, kind="first")
    c.arrow(290, 30, 292, 78, kind="first")
    c.line(290, 30, 532, 30, "first")
    c.arrow(532, 30, 532, 78, kind="first")
    c.arrow(290, 30, 56, 78, kind="first")
    c.text(410, 20, "headers and data, once for each node", "small")
    return c
