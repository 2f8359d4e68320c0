"""The directive ``drawing``: a figure of ``figures/``, in the colours of the page around it."""

import importlib
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Drawing(SphinxDirective):
    """Show what ``figures/<name>.py`` draws; the content is its caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the figure, as SVG inside the page: it follows the page's light or dark."""
        name = self.arguments[0]
        module = importlib.import_module(f"figures.{name}")
        for part in (module.__file__, importlib.import_module("figures.canvas").__file__):
            self.env.note_dependency(str(Path(part)))
        drawing = nodes.raw("", module.draw().svg(), format="html")
        caption = nodes.caption()
        self.state.nested_parse(self.content, self.content_offset, caption)
        if caption.children:
            caption.children = caption.children[0].children
        return [nodes.figure("", drawing, caption, classes=["drawing"])]


def setup(app):
    """Add the directive."""
    app.add_directive("drawing", Drawing)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
