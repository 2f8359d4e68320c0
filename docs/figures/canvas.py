"""What figures are made of: boxes, arrows, lines and words.

A shape has a kind, which is a class of CSS; ``_static/site.css`` has the colours of each, for light
and dark.
"""

import html

ARROW = 8  # length of an arrow's head


class Canvas:
    """A figure of some width and height, in pixels of a wide screen.

    Parameters
    ----------
    width, height : int
        Of the figure.
    title : str
        What it shows, for readers who do not see it.
    """

    def __init__(self, width, height, title):
        self._size = (width, height)
        self._title = title
        self._shapes = []

    def text(self, x, y, words, kind="", anchor="middle"):
        """Write words; their middle, ``start`` or ``end`` is at x."""
        place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
        self._add(f'<text {place} class="{kind}">{html.escape(words)}</text>')

    def box(self, x, y, width, height, words="", kind="plain"):
        """Draw a box; lines of words stand in its middle."""
        self._add(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" class="{kind}"/>'
        )
        lines = words.split("\n") if words else []
        top = y + height / 2 + 4.5 - 8.5 * (len(lines) - 1)
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + 17 * number, line, f"on-{kind}")

    def line(self, x1, y1, x2, y2, kind="line"):
        """Draw a line."""
        self._add(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"/>')

    def arrow(self, x1, y1, x2, y2, words="", kind="line"):
        """Draw an arrow; words stand above its middle."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - ARROW * ux, y2 - ARROW * uy
        self.line(x1, y1, round(bx, 1), round(by, 1), kind)
        wx, wy = -uy * ARROW / 2.2, ux * ARROW / 2.2
        points = " ".join(
            f"{a:.1f},{b:.1f}" for a, b in ((x2, y2), (bx + wx, by + wy), (bx - wx, by - wy))
        )
        self._add(f'<polygon points="{points}" class="{kind} head"/>')
        if words:
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - 6, words, "small")

    def svg(self):
        """Return the figure as an element of a page."""
        width, height = self._size
        # A narrow window shrinks a figure, but to no less than three fifths: then it scrolls.
        least = f'style="min-width: {0.6 * width:.0f}px"'
        size = f'viewBox="0 0 {width} {height}" width="{width}" {least}'
        title = f'role="img" aria-label="{html.escape(self._title)}"'
        return f'<div class="drawing-frame"><svg {size} {title}>{"".join(self._shapes)}</svg></div>'

    def _add(self, shape):
        self._shapes.append(shape)
