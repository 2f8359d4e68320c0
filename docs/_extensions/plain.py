"""Pages are plain Markdown, which code hosts show too; comments say what the site has instead.

``<!-- site`` begins lines for the site alone, up to ``-->``. Parts of the kinds ``host``, ``names``
and ``about`` are for code hosts alone. On the site a program has the name of its file as a caption,
and the methods of a table lead to their docstrings.
"""

import re

from cobre_comm.old_names import OLD_NAMES

OLD = "|".join(OLD_NAMES["comm"])  # these have no docstrings
METHOD = rf"comm\.(?!(?:{OLD})\()(\w+)"

CHANGES = (
    (r"^<!-- (?:host|(?:names|about) [^\n]+) -->\n.*?^<!-- end -->$", ""),
    (r"^<!-- site\n(.*?)\n-->$", r"\1"),
    (r"^<!-- program (?:\S*/)?(\S+)[^\n]* -->\n```(\w+)$", r"```{code-block} \2\n:caption: \1\n"),
    (rf"^\| `({METHOD}[^`]*)` \|", r"| {py:obj}`\1 <cobre_comm.Communicator.\2>` |"),
)


def _for_the_site(_app, _name, source):
    for found, instead in CHANGES:
        source[0] = re.sub(found, instead, source[0], flags=re.DOTALL | re.MULTILINE)


def setup(app):
    """Change a page when it is read."""
    app.connect("source-read", _for_the_site)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
