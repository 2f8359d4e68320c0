"""The life of a region, from its file without a name to its last view."""

from docs.figures.canvas import Canvas

STAGES = (
    ("create", "leader opens a file\nwithout a name; each\nreserves its pages", "first"),
    ("populate", "leader the whole,\nor each rank\nits own block", "second"),
    ("fence", "all writes before it\nare visible to all\nafter it", "good"),
    ("read", "views of the same\npages, no copy", "second"),
    ("close", "the last view unmaps;\nthe kernel frees", "plain"),
)


def draw():
    """Return the figure."""
    c = Canvas(760, 190, "A region is created, populated, fenced, read and closed")
    for number, (name, words, kind) in enumerate(STAGES):
        x = 6 + 152 * number
        c.text(x + 68, 28, name, "title")
        c.box(x, 42, 136, 80, words, kind)
        if number:
            c.arrow(x - 16, 82, x - 1, 82)
    c.line(378, 122, 378, 150, "line dashed")
    c.line(378, 150, 226, 150, "line dashed")
    c.arrow(226, 150, 226, 124)
    c.line(530, 122, 530, 150, "line dashed")
    c.line(530, 150, 378, 150, "line dashed")
    c.text(378, 170, "as often as the program likes; before a rank writes again, a fence", "small")
    return c
