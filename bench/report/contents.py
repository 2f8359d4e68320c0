"""A table of contents before a page's text, with the anchors that GitHub gives to headings."""

from __future__ import annotations

import re


def with_contents(title: str, text: str) -> str:
    """Return a page: its title, links to all headings of the second and third level, its text."""
    lines = []
    for marks, heading in re.findall(r"^(##|###) (.+)$", text, flags=re.MULTILINE):
        indent = "  " * (len(marks) - 2)
        lines.append(f"{indent}- [{heading}](#{anchor(heading)})")
    return "\n\n".join([title, "\n".join(lines), text]) + "\n"


def anchor(heading: str) -> str:
    """Return such as ``in-njit-loops``."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
