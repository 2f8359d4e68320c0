"""Two levels: shared memory within a node, messages between leaders."""

from docs.figures.canvas import Canvas

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
    c.line(52, 34, 532, 34, "first")
    for x in (52, 292, 532):
        c.arrow(x, 34, x, 78, kind="first")
    c.text(292, 22, "headers and data between leaders, once for each node", "small")
    return c
