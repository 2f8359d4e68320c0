"""``cobre-comm explain``: prints the cause and the cure of an error or a mistake, from the docs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import cobre_comm
from cobre_comm.command_line import Parser
from cobre_comm.errors import PAGE, did_you_mean

MISTAKES = "docs/howto/mistakes.md"


def sections(page: str = PAGE) -> dict[str, str]:
    """Return the sections of a page by title; a wheel has the pages among the package's files."""
    package = Path(cobre_comm.__file__).parent
    installed = package / Path(page).name
    path = installed if installed.is_file() else package.parent / page
    found = re.findall(
        r"^### (.+?)$(.+?)(?=^##|\Z)", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return {title: _plain(text) for title, text in found}


def _plain(text: str) -> str:
    """Turn the text of a page into text for a terminal.

    Comments, addresses and bold marks are removed, programs are indented, and each row of a table
    becomes lines.
    """
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.DOTALL | re.MULTILINE)
    program = r"^```\w+\n(.*?)^```$"
    text = re.sub(program, _indented, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    text = re.sub(r"^\| it says .*\n\|-.*\n", "", text, flags=re.MULTILINE)
    row = r"^\| (.+) \| (.+) \| (.+) \|$"
    return re.sub(row, r"\1\n  cause: \2\n  cure: \3", text, flags=re.MULTILINE).strip()


def _indented(program: re.Match[str]) -> str:
    return textwrap.indent(program[1].rstrip(), "    ")


def _words(*texts: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = Parser(
        "explain",
        "Print what causes an error of this package or a common mistake, and what cures it. The "
        "text is that of docs/reference/errors.md and docs/howto/mistakes.md, of the version that "
        "is installed; it needs no network.",
        """
        cobre-comm explain CollectiveFailed
        cobre-comm explain prange              # the mistake with that word in its title
        cobre-comm explain 'int' object is not callable      # the one with these words
        cobre-comm explain                     # the names and titles
        """,
        "0 it is explained, 2 it is not known",
    )
    parser.add_argument(
        "name",
        nargs="*",
        help="class of the error, as the traceback has it; or words of a title or of its text",
    )
    name = " ".join(parser.parse_args(words).name)
    errors, mistakes = sections(), sections(MISTAKES)
    if not name:
        titles = textwrap.indent("\n".join(mistakes), "  ")
        print("\n".join(errors), f"mistakes, by any word of a title:\n{titles}", sep="\n\n")
        return 0
    wanted = name.rpartition(".")[2].lower() if " " not in name else name.lower()
    known = errors | mistakes
    found = [title for title in known if _words(wanted) <= _words(title)]
    naming = [title for title, text in known.items() if _words(wanted) <= _words(text)]
    if not found and len(naming) == 1 and " " in name:
        found = naming
    if not found:
        if naming:
            titles = textwrap.indent("\n".join(naming), "  ")
            print(f"no title has the word {name!r}; it stands in the text of:\n{titles}")
            return 0
        # The names of errors come last, so that a suggestion is written with their capitals.
        names = [*sorted(_words(*known, *known.values())), *re.findall(r"\w+", " ".join(errors))]
        meant = did_you_mean(wanted, names)
        parser.error(
            f"there is no error {name!r}; choose from {', '.join(errors)}, or a word of a mistake "
            f"that `cobre-comm explain` lists{meant}"
        )
    print("\n\n\n".join(f"{title}\n\n{known[title]}" for title in found))
    return 0
