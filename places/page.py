"""Writes the table of a place to a page, between the marks that name the place."""

import datetime
import platform
import re

from places.frame import ROOT

PAGES = [ROOT / "docs" / "howto" / name for name in ("places.md", "mpi4py-programs.md")]


def keep(place):
    """Replace the table of a place on the page that has the marks of the place."""
    versions = ", ".join([place.versions, f"Python {platform.python_version()}"])
    took = f"{place.seconds:.0f} s with setting up"
    lines = [
        f"`make place-{place.name}`, {datetime.date.today()}: {versions}; {took}.",
        "",
        "| what | command | seen | s |",
        "|---|---|---|---|",
        *(_line(row) for row in place.rows),
    ]  # fmt: skip
    begin, end = f"<!-- {place.name} begins -->", f"<!-- {place.name} ends -->"
    block = "\n".join([begin, "", *lines, "", end])
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    marked = [page for page in PAGES if pattern.search(page.read_text())]
    if not marked:
        raise SystemExit(f"no page has marks of {place.name}")
    marked[0].write_text(pattern.sub(lambda _: block, marked[0].read_text()))


def _line(row):
    seen = " ".join(row.seen.split()).replace("|", "\\|").replace("<", "&lt;")
    seen = seen if row.good else f"**not as it should be:** {seen}"
    return f"| {row.what} | `{row.command}` | {seen} | {row.seconds:.0f} |"
