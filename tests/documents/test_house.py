"""The house: its runtime does not grow, and no two of its classes or modules share a name."""

import ast
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
KERNELS, PACKAGE = ROOT / "kernels" / "cobre_kernels", ROOT / "cobre_comm"
# Lines of the runtime. The number falls without a word, and rises only with a sentence beside it:
# by 8 so that no exception is lost while a region goes; by 54 so that no launcher ends well with
# its output cut, waits for ever for a reader, or leaves a worker or a connection behind; by 39 so
# that no interrupt is lost when numba first asks for a type, or as a compiled call fails; by 7 so
# that one rank of a test compiles what all need (names of numba stand in one file); by 85 so that
# functions that numba loads from caches keep apart.
MOST_LINES = 38_440
MOST_MODULES = 12  # beside the packages
APART = ("testing", "check")  # what judges backends, and is no part of the runtime


def runtime():
    """Return every file that a rank or a launcher may load."""
    ours = [
        path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in APART
    ]
    return sorted([*KERNELS.rglob("*.py"), *ours])


def test_the_runtime_does_not_grow():
    lines = sum(len(path.read_text().splitlines()) for path in runtime())
    assert lines <= MOST_LINES
    assert lines > MOST_LINES - 200, (
        f"lower MOST_LINES to {lines}, so that the runtime stays so small"
    )


def test_no_two_classes_share_a_name():
    homes = collections.defaultdict(list)
    for path in runtime():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


# Two modules have one name only where they are one thing: of each backend, of each collective, of
# each transport or protocol of kernels, or a thing in Python and the same thing in kernels.
OF_EACH = [
    "backend",
    "spec",
    "split",
    "memory",
    "meet",
    "node_order",
    "council",
    "command",
    "barrier",
    "broadcast",
    "allreduce",
    "allgatherv",
    "gatherv",
    "exact_sum",
    "derived",
    "calls",
    "control",
    "messages",
    "protocol",
    "reading",
    "records",
    "verbs",
    "waiting",
    "draws",
    "lanes",
    "links",
    "objects",
    "phases",
    "progress",
    "region",
    "regions",
    "signals",
    "sockets",
    "trace",
    "work",
]


def test_no_two_modules_share_a_name_but_for_one_thing():
    stems = collections.Counter(path.stem for path in runtime() if path.stem[:2] != "__")
    shared = {stem for stem, times in stems.items() if times > 1}
    assert shared == set(OF_EACH)


def test_a_reader_finds_packages_and_few_modules():
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MOST_MODULES, sorted(modules)


def _imported(tree):
    """Return the modules that a file imports by their whole names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_the_examples_use_what_the_reference_documents():
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = set(re.findall(r"^\.\. (?:current|auto)?module:: (\S+)$", pages, re.MULTILINE))
    assert {"cobre_comm", "cobre_comm.random"} <= documented
    ours = {
        module
        for path in (ROOT / "examples").rglob("*.py")
        for module in _imported(ast.parse(path.read_text()))
        if module.startswith("cobre_")
    }
    assert ours
    assert ours <= documented
