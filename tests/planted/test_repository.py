"""Runs find mistakes of several kinds, each planted in a copy of this repository.

For each mistake, REPOSITORY_CATCHERS names the run that finds the mistake, and one test of this
run. The test must pass without the mistake, so that its failure shows that it finds the mistake.
Kernels run as Python, because to compile a changed kernel takes longer than all of these tests.
"""

import os
import pathlib
import shutil

import pytest

from tests.command import python
from tests.planted.catchers import REPOSITORY_CATCHERS
from tests.planted.running import ALL_PASSED, RUNS, SOME_FAILED, load_faults

COPIED = ("cobre_comm", "kernels", "tests", "docs", "examples", "pyproject.toml", "README.md")
ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 300
faults = load_faults()
FAULTS = faults.REPOSITORY_FAULTS


@pytest.fixture
def copy(tmp_path):
    """The folder of a copy of this repository."""
    for part in COPIED:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tmp_path / part)
    return tmp_path


def assert_ends(copy, code, run, test, word):
    """Run the instances of a test that a run has; pytest must end with this exit code."""
    path = os.pathsep.join([str(copy), str(copy / "kernels")])
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    words = "-m", "pytest", "-q", "-m", RUNS[run], "-k", word, "-p", "no:cacheprovider"
    python(*words, f"tests/{test}", code=code, within_s=LIMIT_S, cwd=copy, env=env)


def test_each_fault_has_its_test():
    assert set(FAULTS) == set(REPOSITORY_CATCHERS)


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_S + 60)
@pytest.mark.parametrize("name", REPOSITORY_CATCHERS)
def test_its_run_finds(copy, name):
    assert_ends(copy, ALL_PASSED, *REPOSITORY_CATCHERS[name])
    changed = copy / FAULTS[name].path
    changed.write_text(faults.patched(changed.read_text(), FAULTS[name].hunks))
    assert_ends(copy, SOME_FAILED, *REPOSITORY_CATCHERS[name])
