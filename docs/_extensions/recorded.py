"""The directive ``recorded``: a table of recorded figures, made from ``bench/recorded``.

Its two words are those of ``bench/report/pages.py``, such as ``table mpi`` and ``run mpi``.
"""

import functools

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from bench.cobre.page import RECORDED as BESIDE_COBRE
from bench.report.data import RECORDED, load
from bench.report.pages import MAKERS

FILES = [*sorted(RECORDED.glob("*.json")), *sorted(BESIDE_COBRE.glob("*.json"))]


@functools.cache
def _results():
    return load(sorted(RECORDED.glob("*.json")))


class Recorded(SphinxDirective):
    """Show one table of the records: the repository keeps the figures, and no copy of them."""

    required_arguments = 2

    def run(self):
        """Return the table."""
        for path in FILES:
            self.env.note_dependency(str(path))
        kind, name = self.arguments
        lines = MAKERS[kind](_results(), name).splitlines()
        shown = nodes.container()
        self.state.nested_parse(StringList(lines, source="bench/recorded"), 0, shown)
        return shown.children


def setup(app):
    """Add the directive."""
    app.add_directive("recorded", Recorded)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
