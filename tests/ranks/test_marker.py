"""The mark ``ranks`` in a user's tests: the tests of the page as they are, and tests that fail."""

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cobre_comm.testing.marker.jobs import _jobs
from tests.command import python

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "testing-your-program"
FAILING = Path(__file__).with_name("failing_tests.txt")
# For each test: texts in its report, in the traceback or in the captured output.
WORDS = {
    "test_assert[shm-2]": [
        "rank 1 of 2 over shm: AssertionError: on its own\n",
        "Differing items:",
        "and then rank 0: ",
    ],
    "test_everywhere[shm-2]": [
        "ranks 0 and 1 of 2 over shm: assert 2 == 3",
        "where 2 = ShmBackend(rank=0",
    ],
    "test_limit[shm-2]": [
        "ranks 0 and 1 of 2 over shm: still busy after 3 s",
        "in forgets_the_others",
        "_____ rank 1: still busy",
        "line 34 in test_limit",
    ],
    "test_killed[shm-2]": ["rank 1 of 2 over shm: its process ended with exit code -9", "rank 0"],
    "test_what_does_not_pickle[shm-2]": ["the argument capsys cannot go to the ranks"],
    "test_fixture_that_communicates[shm-2]": ["comm.barrier: fixtures run in pytest's own process"],
    "test_another_rank_raises[shm-2]": ["KeyError: 'mine'", "DID NOT RAISE"],
    "test_async[shm-2]": ["ranks 0 and 1 of 2 over shm: test_async has not run, for it is async"],
    "test_async_generator[shm-2]": ["test_async_generator has not run, for it is async or"],
    "test_case": ["test_case is marked with ranks, but a method of a unittest.TestCase gets no"],
    "test_nobody_is_killed[shm-2]": ["0 of 2 ranks over shm were killed, not 1"],
    "test_survivor_fails[shm-3]": ["rank 2 of 3 over shm: assert 2 == 1"],
    "test_method[shm-2]": ["ranks 0 and 1 of 2 over shm: assert 5 == (2 * 2)"],
}
WRONG = """
import pytest

@pytest.mark.ranks(2)
def test_without_its_communicator():
    pass
"""


def run_pytest(folder, *arguments):
    """Run pytest in two processes of xdist; return pytest's tests by name, and its output."""
    words = "-m", "pytest", "-n2", "--dist=loadfile", "-p", "no:cacheprovider"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    (folder / "pytest.ini").touch()  # otherwise pytest would read a configuration in a folder above
    done = python(
        *words, "--junitxml=report", "--continue-on-collection-errors", *arguments,
        code=None, within_s=200, cwd=folder, env=environment,
    )  # fmt: skip
    tests = {
        each.get("name"): each for each in ElementTree.parse(folder / "report").iter("testcase")
    }
    return tests, done.stdout + done.stderr


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return pytest's results for the tests of the page, tests that fail, and a wrong mark."""
    folder = tmp_path_factory.mktemp("program")
    for program in PAGE.glob("*.py"):
        (folder / program.name).write_text(program.read_text())
    (folder / "test_failing.py").write_text(FAILING.read_text())
    (folder / "test_wrong.py").write_text(WRONG)
    return run_pytest(folder, "--strict-markers", "-W", "error")


@pytest.mark.slow
def test_the_page_passes(seen):
    tests, output = seen
    ours = [
        each for each in tests.values() if each.get("classname") in ("test_share", "test_missing")
    ]
    assert len(ours) == 8 + 1 + 2, output
    assert [each.get("name") for each in ours if len(each)] == [], output


@pytest.mark.slow
@pytest.mark.parametrize("name", WORDS)
def test_failure_is_shown_with_its_rank(seen, name):
    [failure] = [each for each in seen[0][name] if each.tag in ("failure", "error")]
    for word in WORDS[name]:
        assert word in failure.text + "".join(seen[0][name].itertext())


@pytest.mark.slow
def test_output_of_each_rank_is_shown(seen):
    assert re.search(r"Captured output of rank 0 call -+\nbefore on 0\n", seen[1])


@pytest.mark.slow
def test_skipped_and_expected_failures(seen):
    tests, _ = seen
    assert "rank 0: not today" in tests["test_skipped[shm-2]"].find("skipped").get("message")
    assert tests["test_expected[shm-2]"].find("skipped").get("type") == "pytest.xfail"
    assert len(tests["test_after_a_death[shm-2]"]) == len(tests["test_one_is_killed[shm-2]"]) == 0
    assert len(tests["test_unmarked"]) == 0


@pytest.mark.slow
def test_wrong_marks(seen):
    assert "give it an argument `comm`" in seen[1]
    for arguments, named, words in [
        ((), {}, "numbers of ranks are positive ints"),
        ((0,), {}, "not"),
        ((2,), {"backends": "shm"}, "backends is a list"),
        ((2,), {"backends": ["shmem"]}, "there is no backend 'shmem', only local, shm, tcp, mpi"),
        ((2,), {"backends": ["local"]}, "local has one rank"),
        ((2,), {"timeout": 0}, "seconds"),
        ((2,), {"killed": 2}, "one has to judge"),
    ]:
        with pytest.raises(ValueError, match=words):
            list(_jobs(*arguments, **named))


def test_loading_the_plugin_imports_nothing_else():
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport cobre_comm.testing.plugin\n"
        "print(*sorted(name for name in set(sys.modules) - before if 'cobre_kernels' in name "
        "or name.startswith(('cobre_comm.', 'numba', 'numpy'))))"
    )
    assert python("-c", code).stdout.split() == ["cobre_comm.testing", "cobre_comm.testing.plugin"]
