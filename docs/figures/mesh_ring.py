"""Mesh and ring: the two ways of a payload over sockets."""

from math import cos, pi, sin

from docs.figures.canvas import Canvas

LEADERS = 5


def draw():
    """Return the figure."""
    c = Canvas(720, 300, "Left a mesh of five leaders, right a ring of them")
    c.text(180, 20, "small payloads: a mesh", "title")
    mesh = [(180 + 115 * cos(a), 160 + 100 * sin(a)) for a in _angles(LEADERS, -pi / 2)]
    for x, y in mesh:
        for to_x, to_y in mesh:
            if (x, y) != (to_x, to_y):
                begin, end = _towards(x, y, to_x, to_y, 26), _towards(to_x, to_y, x, y, 26)
                c.arrow(*begin, *end, kind="first")
    for number, (x, y) in enumerate(mesh):
        _leader(c, x, y, number)
    c.text(540, 20, "large payloads: a ring", "title")
    ring = [(540 + 115 * cos(a), 160 + 100 * sin(a)) for a in _angles(LEADERS, -pi / 2)]
    for number, (x, y) in enumerate(ring):
        nx, ny = ring[(number + 1) % LEADERS]
        c.arrow(*_towards(x, y, nx, ny, 26), *_towards(nx, ny, x, y, 26), kind="second")
    for number, (x, y) in enumerate(ring):
        _leader(c, x, y, number)
    return c


def _angles(count, first):
    return [first + 2 * pi * k / count for k in range(count)]


def _towards(x, y, to_x, to_y, distance):
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    return (
        round(x + distance * (to_x - x) / length, 1),
        round(y + distance * (to_y - y) / length, 1),
    )


def _leader(c, x, y, number):
    kind = "second" if number else "first"
    c.box(round(x - 22, 1), round(y - 16, 1), 44, 32, f"{number}", kind)
