"""What figures are made of: boxes, arrows, lines and words.

A shape has a kind, which is a class of CSS. Each figure has the colours of all kinds, for readers
of light and of dark pages.
"""

import html

ARROW = 8  # length of an arrow's head
# The colour on a light page, and on a dark page.
COLOURS = {
    "paper": ("#ffffff", "#14181e"),
    "text": ("#222832", "#ced6dd"),
    "muted": ("#48566b", "#9ca4af"),
    "border": ("#c9ced4", "#48566b"),
    "surface": ("#f3f4f5", "#29313d"),
    "first": ("#0a7d91", "#3fb1c5"),
    "first-bg": ("#e0f2f5", "#053f49"),
    "second": ("#8045e5", "#9c5ffd"),
    "second-bg": ("#efe8fc", "#341a61"),
    "good": ("#00843f", "#5fb488"),
    "good-bg": ("#d6ece1", "#002f17"),
    "bad": ("#d72d47", "#e78894"),
    "bad-bg": ("#f9e1e4", "#4e111b"),
}
STYLE = """
text { fill: var(--text); font: 13.5px system-ui, sans-serif; }
.small { font-size: 12px; fill: var(--muted); }
.title { font-weight: 600; }
.mono, .on-word { font: 12px ui-monospace, monospace; }
rect { stroke-width: 1.4px; stroke: var(--border); fill: none; }
.paper { stroke: none; fill: var(--paper); }
.plain { fill: var(--surface); }
.word { fill: var(--paper); }
.frame { stroke-dasharray: 5 4; }
line { stroke: var(--muted); stroke-width: 1.5px; }
.dashed { stroke-dasharray: 4 4; }
polygon { fill: var(--muted); }
"""


def _style():
    """Return the style of a figure."""
    light, dark = (
        " ".join(f"--{name}: {pair[side]};" for name, pair in COLOURS.items()) for side in (0, 1)
    )
    kinds = "".join(
        f"rect.{kind} {{ fill: var(--{kind}-bg); stroke: var(--{kind}); }}\n"
        f"line.{kind} {{ stroke: var(--{kind}); }}\npolygon.{kind} {{ fill: var(--{kind}); }}\n"
        for kind in ("first", "second", "good", "bad")
    )
    in_dark = f"@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}"
    return f"<style>\nsvg {{ {light} }}\n{in_dark}{STYLE}{kinds}</style>"


class Canvas:
    """A figure of some width and height, in pixels of a wide screen.

    Parameters
    ----------
    width, height : int
        Of the figure.
    title : str
        What the figure shows, for readers who cannot see it.
    """

    def __init__(self, width, height, title):
        self._size = (width, height)
        self._title = title
        self._shapes = []

    def text(self, x, y, words, kind="", anchor="middle"):
        """Write words so that their ``middle``, ``start`` or ``end`` is at x."""
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
        """Return the figure as the text of a file."""
        width, height = self._size
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        title = f'role="img" aria-label="{html.escape(self._title)}"'
        paper = '<rect width="100%" height="100%" class="paper"/>'
        start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {title}>'
        return "\n".join([start, _style(), paper, *self._shapes, "</svg>\n"])

    def _add(self, shape):
        self._shapes.append(shape)
