"""Star and ring: the two ways of a payload over sockets."""

from math import cos, pi, sin

from figures.canvas import Canvas

RANKS = 5


def draw():
    """Return the figure."""
    c = Canvas(720, 300, "Left a star around rank 0, right a ring of five ranks")
    c.text(180, 20, "small payloads: a star", "title")
    spokes = [(180 + 115 * cos(a), 160 + 95 * sin(a)) for a in _angles(RANKS - 1, pi / 4)]
    for x, y in spokes:
        c.arrow(x, y, *_towards(180, 160, x, y, 34), kind="first")
        c.arrow(*_towards(180, 160, x, y, 34), *_towards(x, y, 180, 160, 24), kind="first")
    for number, (x, y) in enumerate(spokes):
        _rank(c, x, y, number + 1, "second")
    _rank(c, 180, 160, 0, "first")
    c.text(540, 20, "large payloads: a ring", "title")
    ring = [(540 + 115 * cos(a), 160 + 100 * sin(a)) for a in _angles(RANKS, -pi / 2)]
    for number, (x, y) in enumerate(ring):
        nx, ny = ring[(number + 1) % RANKS]
        c.arrow(*_towards(x, y, nx, ny, 26), *_towards(nx, ny, x, y, 26), kind="second")
    for number, (x, y) in enumerate(ring):
        _rank(c, x, y, number, "second" if number else "first")
    return c


def _angles(count, first):
    return [first + 2 * pi * k / count for k in range(count)]


def _towards(x, y, to_x, to_y, distance):
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    return (
        round(x + distance * (to_x - x) / length, 1),
        round(y + distance * (to_y - y) / length, 1),
    )


def _rank(c, x, y, number, kind):
    c.box(round(x - 22, 1), round(y - 16, 1), 44, 32, f"{number}", kind)
