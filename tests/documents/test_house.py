"""The house: its runtime does not grow, and no two of its classes share a name."""

import ast
import collections
import pathlib

import pytest

pytestmark = pytest.mark.quick

ROOT = pathlib.Path(__file__).parents[2]
KERNELS, PACKAGE = ROOT / "kernels" / "cobre_kernels", ROOT / "cobre_comm"
# Lines of the runtime. The number falls without a word, and rises only with a sentence beside it.
MOST_LINES = 38_600
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


def test_a_reader_finds_packages_and_few_modules():
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MOST_MODULES, sorted(modules)
