"""Write the table of a place into docs/howto/places.md, between the marks of that place."""

import datetime
import platform
import re

from places.frame import ROOT

PAGE = ROOT / "docs" / "howto" / "places.md"


def keep(place):
    """Replace the table of a place on the page."""
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
    text = PAGE.read_text()
    block = "\n".join([begin, "", *lines, "", end])
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE} has no marks of {place.name}")
    PAGE.write_text(pattern.sub(lambda _: block, text))


def _line(row):
    seen = " ".join(row.seen.split()).replace("|", "\\|").replace("<", "&lt;")
    seen = seen if row.good else f"**not as it should be:** {seen}"
    return f"| {row.what} | `{row.command}` | {seen} | {row.seconds:.0f} |"
