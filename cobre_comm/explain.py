"""``cobre-comm explain``: print cause and cure of an error, from the page of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import cobre_comm
from cobre_comm.common.command_line import Parser
from cobre_comm.errors import PAGE, did_you_mean


def sections() -> dict[str, str]:
    """Return the sections of the page by title; a wheel has the page in this package."""
    package = Path(cobre_comm.__file__).parent
    installed = package / Path(PAGE).name
    page = installed if installed.is_file() else package.parent / PAGE
    found = re.findall(
        r"^### (.+?)$(.+?)(?=^##|\Z)", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return {title: _plain(text) for title, text in found}


def _plain(text: str) -> str:
    """Make text for a terminal: drop directives and addresses, turn a row of a table into lines."""
    text = re.sub(r"^```.*?^```\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"^\| it says .*\n\|-.*\n", "", text, flags=re.MULTILINE)
    row = r"^\| (.+) \| (.+) \| (.+) \|$"
    return re.sub(row, r"\1\n  cause: \2\n  cure: \3", text, flags=re.MULTILINE).strip()


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = Parser(
        "explain",
        "Print what causes an error of this package, and what cures it. The text is that of "
        "docs/reference/errors.md, of the version that is installed; it needs no network.",
        """
        cobre-comm explain CollectiveFailed
        cobre-comm explain                     # the names
        """,
        "0 the error is explained, 2 it is not known",
    )
    parser.add_argument("name", nargs="?", help="class of the error, as the traceback has it")
    name = parser.parse_args(words).name
    known = sections()
    if name is None:
        print("\n".join(known))
        return 0
    wanted = name.rpartition(".")[2].lower()
    found = next((title for title in known if wanted in title.lower().split()), None)
    if found is None:
        names = [word for title in known for word in title.split()]
        meant = did_you_mean(name.rpartition(".")[2], names)
        parser.error(f"there is no error {name!r}; choose from {', '.join(known)}{meant}")
    print(f"{found}\n\n{known[found]}")
    return 0
