"""Every file, link, heading and name of the package that documents name exists."""

import importlib
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "bench" / "README.md",
        ROOT / "examples" / "sddp" / "README.md",
    ]
)
FILES = {
    one.as_posix()
    for folder in ("bench", "cobre_comm", "docs", "examples", "kernels", "model", "places", "tests")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
    for one in (path.relative_to(ROOT), *path.relative_to(ROOT).parents)
} | {"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "pyproject.toml"}
# Files that pages name, and that exist only later: the reader's own script, and results of a
# benchmark.
MADE_LATER = ("script.py", "bench/results/")
SUFFIXES = "md|pml|py|toml"


def fences_removed(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def spans(text):
    """Return the code spans outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", fences_removed(text))


def paths(text):
    """Return the files and folders of this repository that code spans name."""
    folders = "bench|cobre_comm|docs|examples|kernels|model|tests"
    named = rf"[\w*][\w*./-]*\.(?:{SUFFIXES})\b|(?:{folders})/[\w*./-]*"
    variable = re.compile(r"<\w+>")  # a path may have a variable, as in backends/<name>/spec.py
    found = {
        path
        for span in spans(text)
        for path in re.findall(rf"(?<![\w*./-])(?:{named})", variable.sub("*", span))
    }
    return sorted(path for path in found if not path.startswith(MADE_LATER))


def exists(path):
    """Tell whether the path of some file or folder is ``path``, or ends with ``path``."""
    return any(fnmatch(f"/{name}", f"*/{path.rstrip('/')}") for name in FILES)


def anchors(text):
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", fences_removed(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_reachable(link, document):
    """Tell whether a relative link leads to a file that exists, and to a heading of that file."""
    path, _, anchor = link.partition("#")
    target = ROOT / document.parent / path if path else ROOT / document
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def functions_not_there(text):
    """Return code spans such as ``shm/step.py: publish``, if that file has no such function."""
    named = [re.fullmatch(r"([\w/.]+\.py): (\w+)", span) for span in spans(text)]
    return [match[0] for match in named if match and not defines(*match.groups())]


def defines(path, name):
    """Tell whether a file has the function or class; the file's path ends with ``path``."""
    files = [ROOT / one for one in FILES if f"/{one}".endswith(f"/{path}")]
    definition = re.compile(rf"^ *(?:def|class) {name}\b", re.MULTILINE)
    return any(definition.search(one.read_text()) for one in files)


def resolves(name):
    """Tell whether a dotted name is a module, or an attribute of one."""
    module, *attributes = name.split(".")
    value = importlib.import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        try:
            value = getattr(value, attribute)
        except AttributeError:
            try:
                value = importlib.import_module(module)
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_what_a_document_names_exists(document):
    text = (ROOT / document).read_text()
    assert not [path for path in paths(text) if not exists(path)]
    assert not functions_not_there(text)
    links = re.findall(r"\]\(([^)\s]+)\)", fences_removed(text))
    relative = [link for link in links if not link.startswith("http")]
    assert not [link for link in relative if not is_reachable(link, document)]
    code = " ".join(spans(text))
    named = set(re.findall(r"(?<![\w./-])cobre_(?:comm|kernels)(?:\.\w+)+", code))
    assert not [name for name in named if not resolves(name)]


def test_what_does_not_exist_is_found():
    page = Path("docs/howto/page.md")
    text = "Of `shm/gone.py`, `docs/gone/` and `shm/step.py`:\n```\n`other.py`\n```\n"
    assert [path for path in paths(text) if not exists(path)] == ["docs/gone/", "shm/gone.py"]
    assert functions_not_there("`shm/step.py: gone`, `shm/step.py: publish`") == [
        "shm/step.py: gone"
    ]
    assert not is_reachable("gone.md", page)
    assert not is_reachable("launching.md#gone", page)
    assert is_reachable("launching.md#mpi-one-machine", page)
    assert not resolves("cobre_comm.gone.name")
    assert not resolves("cobre_comm.config.Gone")
    assert resolves("cobre_comm.config.ShmConfig")
