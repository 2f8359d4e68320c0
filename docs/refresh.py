"""Writes the parts of pages that show other files: as plain Markdown, which code hosts show too.

A part is between ``<!-- KIND WORDS -->`` and ``<!-- end -->``. Files are named as from the page.

- ``program FILE``: a whole program; ``from WORDS`` begins it at the first line that has these
  words, ``to WORDS`` ends it before the next line that has those.
- ``diff OLD NEW``: how two programs differ.
- ``readme from WORDS to WORDS``: lines of the README; ``readme python``: its program.
- ``names MODULE NAME...``: a table of public names, each with the first paragraph of its
  docstring, and a link to its source; ``NAME.*`` adds the members of a class. ``about MODULE
  NAME``: this paragraph alone. The site leaves both out, because it has the whole docstrings.
- ``records``: the tables of the words that kernels read and write.
- ``output``: commands, and what they have printed: :mod:`docs.commands`.
- Tables of figures have the kinds of :mod:`bench.report.pages`.

``python -m docs.refresh`` writes them anew, and the drawings of ``docs/figures``, but no output:
``--run`` also runs the commands of all pages, or of those that are named. ``--check`` writes
nothing, shows what would change, and fails if anything would.
"""

import argparse
import difflib
import functools
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import sys
import typing
from pathlib import Path

from bench.report import pages as tables
from bench.report.data import RECORDED, load
from bench.report.text import filled, table
from cobre_comm.old_names import OldName
from docs import commands

DOCS = Path(__file__).parent
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml"}


def refreshed(page, text=None):
    """Return the text of a page with all parts made anew, but for the output of commands."""

    def make(kind, words, _):
        if kind in tables.MAKERS:
            return tables.MAKERS[kind](_recorded(), words)
        return MAKERS[kind](page, words) if kind in MAKERS else None

    return filled(page.read_text() if text is None else text, make)


def drawings():
    """Return the text of each drawing by its path."""
    names = [path.stem for path in (DOCS / "figures").glob("[!_]*.py") if path.stem != "canvas"]
    modules = [importlib.import_module(f"docs.figures.{name}") for name in names]
    return {Path(module.__file__).with_suffix(".svg"): module.draw().svg() for module in modules}


def _fence(language, lines):
    return "\n".join([f"```{language}", *lines, "```"])


def _program(page, words):
    name, _, part = words.partition(" ")
    path = page.parent / name
    return _fence(LANGUAGES[path.suffix], _part_of(path, part))


def _readme(_, words):
    if words in ("python", "console"):
        return re.search(f"^```{words}\n.*?^```$", PAGES[0].read_text(), re.DOTALL | re.MULTILINE)[
            0
        ]
    return "\n".join(_part_of(PAGES[0], words)).replace("](docs/", "](")


def _part_of(path, words):
    """Return the lines of a file that a part shows: all, or those ``from WORDS to WORDS``."""
    first, last = re.fullmatch(r"(?:from (.+?))?(?: ?to (.+))?", words).groups()
    lines = path.read_text().splitlines()
    lines = lines[_line_of(first, lines) :] if first else lines
    lines = lines[: _line_of(last, lines[1:]) + 1] if last else lines
    return "\n".join(lines).strip("\n").split("\n")


def _line_of(words, lines):
    for number, line in enumerate(lines):
        if words in line:
            return number
    raise ValueError(f"no line has {words!r}")


def _diff(page, words):
    old, new = (page.parent / name for name in words.split())
    sides = (path.read_text().splitlines() for path in (old, new))
    return _fence("diff", difflib.unified_diff(*sides, old.name, new.name, lineterm=""))


def _names(page, words):
    module, *names = words.split()
    rows = []
    for name in names:
        owner, _, all_of_it = name.partition(".")
        value = getattr(importlib.import_module(module), owner)
        cell = f"`{owner}{_arguments(value)}`"
        if inspect.isclass(value) or inspect.isroutine(value):
            source = DOCS.parent.joinpath(*value.__module__.split("."))
            source = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
            cell = f"[{cell}]({os.path.relpath(source, page.parent)})"
        rows.append([cell, _sentence(value)])
        for member in sorted(dir(value)) if all_of_it else ():
            attribute = inspect.getattr_static(value, member)
            is_shown = inspect.isroutine(attribute) or isinstance(attribute, property)
            if member[0] != "_" and is_shown and not isinstance(attribute, OldName):
                attribute = getattr(value, member)
                rows.append([f"`{owner}.{member}{_arguments(attribute)}`", _sentence(attribute)])
    return table(["name", "what it is"], rows)


def _about(_, words):
    module, name = words.split()
    return _sentence(getattr(importlib.import_module(module), name))


def _arguments(value):
    """Return the names of the arguments of a function, in parentheses; a class has none here."""
    if not inspect.isroutine(value):
        return ""
    names = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    return f"({', '.join(names)})"


def _sentence(value):
    """Return the first paragraph of a docstring; of a union, its members."""
    if of := typing.get_args(value):
        return "one of " + ", ".join(f"`{each.__name__}`" for each in of)
    paragraph = " ".join(inspect.getdoc(value).split("\n\n")[0].split())
    return re.sub(r":\w+:`~?(.+?)`", r"`\1`", paragraph).replace("``", "`")


def _records(*_):
    import cobre_kernels
    from cobre_kernels.machine.record import RECORDS

    for module in pkgutil.walk_packages(cobre_kernels.__path__, "cobre_kernels."):
        importlib.import_module(module.name)
    return "\n\n".join(_described(RECORDS[name], RECORDS) for name in sorted(RECORDS))


def _described(record, records):
    """Return a record's section of the page."""
    rows = [
        [str(record.offsets[name]), f"`{name}`", _kind_of(field, records), field.meaning]
        for name, field in record.fields.items()
    ]
    head = ["offset", "field", "kind", "meaning"]
    return f"## {record.name}\n\n{record.about}\n\n{table(head, rows)}"


def _kind_of(field, records):
    if field.kind == "memory":
        return f"{field.size_bytes} bytes"
    if field.kind == "own_rows" and field.size_bytes:
        return f"{field.size_bytes // records[field.target].size_bytes} {field.target}"
    return f"{field.kind} {field.target}".strip()


@functools.cache
def _recorded():
    return load(sorted(RECORDED.glob("*.json")))


MAKERS = {
    "program": _program,
    "diff": _diff,
    "readme": _readme,
    "names": _names,
    "about": _about,
    "records": _records,
}


def write(run=False, check=False, pages=()):
    """Write these pages, or else all pages and drawings; return the lines that differ, by file."""
    made = {page.resolve(): refreshed(page.resolve()) for page in pages or PAGES}
    for page, text in made.items() if run else ():
        if "<!-- output" in text:
            made[page], folder = commands.rerun(page, text)
            if check and made[page] != text:  # try once more: the machine may have been busy
                made[page], folder = commands.rerun(page, text)
            if not check and made[page] != page.read_text():
                for name in re.findall(rf"^!\[.*\]\({page.stem}/(.+)\)$", text, re.MULTILINE):
                    shutil.copy(folder / name, page.with_suffix("") / name)
    changed = {}
    for path, text in (made if pages else made | drawings()).items():
        old = path.read_text() if path.exists() else ""
        if text != old:
            sides = (each.splitlines() for each in (old, text))
            changed[path] = list(difflib.unified_diff(*sides, lineterm="", n=1))
            if not check:
                path.write_text(text)
    return changed


def main():
    """Print what has changed; return 1 if ``--check`` finds a change."""
    parser = argparse.ArgumentParser("python -m docs.refresh", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--run", action="store_true", help="run the commands of the pages too")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("pages", type=Path, nargs="*", help="all, if none is named")
    options = parser.parse_args()
    changed = write(**vars(options))
    for path, lines in changed.items():
        print(path, *(lines if options.check else ()), sep="\n")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
