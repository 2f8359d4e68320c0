"""`make quick` finds faults of five kinds, each planted in a copy of this repository.

For each fault, CATCHERS names the one test of a quick run that finds it. This test is run before
the fault is planted too, and must pass, so it is the fault that makes it fail. Kernels run as
Python, because to compile a changed kernel takes longer than all of these tests.
"""

import os
import pathlib
import shutil

import pytest

from tests.command import python
from tests.planted.running import ALL_PASSED, SOME_FAILED, load_faults

COPIED = ("cobre_comm", "kernels", "tests", "docs", "examples", "pyproject.toml", "README.md")
ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 300
ZEROS = "conformance/test_table.py::TestTable::TestAllreduce::test_earlier_zero_and_first_nan_stay"
ENDINGS = "launch/run/test_endings.py::test_first_failure_ends_the_job_with_its_code"
# A test, and a word that stands in the names of some of its instances.
CATCHERS = {
    "floored-stripe": (ZEROS, "tcp-4"),
    "order-of-two": (ZEROS, "shm-2"),
    "relaxed-store": ("kernels/threads/test_threads.py::test_words_see_only_what_is_stated", ""),
    "wrong-exit-code": (ENDINGS, "kill"),
    "wrong-sentence": (
        "conformance/test_errors.py::test_the_page_has_what_a_refused_call_and_a_lost_rank_say", "",
    ),
}  # fmt: skip
faults = load_faults()
FAULTS = faults.REPOSITORY_FAULTS


@pytest.fixture
def copy(tmp_path):
    """The folder of a copy of this repository."""
    for part in COPIED:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tmp_path / part)
    return tmp_path


def assert_quick_ends(copy, code, test, word):
    """Run the instances of a test that a quick run has; they must end with this exit code."""
    path = os.pathsep.join([str(copy), str(copy / "kernels")])
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    words = "-m", "pytest", "-q", "-m", "quick", "-k", word, "-p", "no:cacheprovider"
    python(*words, f"tests/{test}", code=code, within_s=LIMIT_S, cwd=copy, env=env)


def test_each_fault_has_its_test():
    assert set(FAULTS) == set(CATCHERS)


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_S + 60)
@pytest.mark.parametrize("name", CATCHERS)
def test_quick_run_finds(copy, name):
    assert_quick_ends(copy, ALL_PASSED, *CATCHERS[name])
    changed = copy / FAULTS[name].path
    changed.write_text(faults.patched(changed.read_text(), FAULTS[name].hunks))
    assert_quick_ends(copy, SOME_FAILED, *CATCHERS[name])
