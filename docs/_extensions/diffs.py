"""A difference of two programs names them as readers have them, not where this machine does."""

import re

from docutils import nodes


def _shorten(app, doctree):
    header = re.compile(rf"^(---|\+\+\+) {re.escape(str(app.srcdir))}/\S*?([^/\s]+)$", re.MULTILINE)
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") == "udiff":
            block.rawsource = header.sub(r"\1 \2", block.astext())
            block.children = [nodes.Text(block.rawsource)]


def setup(app):
    """Look when a page has been read."""
    app.connect("doctree-read", _shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
