"""In CI, a test that fails is tried again; if it passes then, it is listed, else CI fails."""

import os
import pathlib
import sys

import pytest

from tests.command import run

AGAIN = pathlib.Path(__file__).parents[2] / ".ci" / "again.py"
TESTS = """
import os, pathlib
import pytest

def is_first(name):
    place = pathlib.Path(name)
    try:
        return not place.exists()
    finally:
        place.touch()

def test_good():
    pass

@pytest.mark.parametrize("name", ["a-b", "c[d"])
def test_fails_once(name):
    assert not is_first(name)

@pytest.fixture
def fails_once_at_its_end():
    yield
    assert not is_first("end")

def test_with_a_fixture(fails_once_at_its_end):
    pass

def test_crashes_once():
    if is_first("crash"):
        os._exit(3)
"""
ONCE = [
    "test_it.py::test_crashes_once",
    "test_it.py::test_fails_once[a-b]",
    "test_it.py::test_fails_once[c[d]",
    "test_it.py::test_with_a_fixture",
]
# By name: the code that is added to the tests, and the exit code that the command then has.
MORE = {
    "nothing": ("", 0),
    "a failure": ("def test_more():\n    assert 1 + 1 == 3", 1),
    "a crash": ("def test_more():\n    os.kill(os.getpid(), 11)", 1),
    "an error of collection": ("import no_such_module", 1),
}


WITHOUT_PLUGIN = ("-p", "no:cobre_comm.testing.plugin")


def tried(folder, tests, *options):
    """Return the completed command, and the tests that passed when they were tried again."""
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").touch()
    words = sys.executable, AGAIN, "name", "-n", "2", *WITHOUT_PLUGIN, *options
    done = run(*words, code=None, cwd=folder, env={**os.environ, "PYTEST_ADDOPTS": ""})
    listed = folder / "build" / "again" / "passed.txt"
    return done, sorted(listed.read_text().splitlines()) if listed.exists() else []


@pytest.mark.slow
@pytest.mark.skipif(not AGAIN.exists(), reason="only in a checkout")
@pytest.mark.parametrize("more", MORE)
def test_what_passes_at_the_second_try_is_listed(tmp_path, more):
    text, code = MORE[more]
    done, listed = tried(tmp_path, f"{TESTS}\n{text}\n")
    assert done.returncode == code, done.stdout
    assert listed == ([] if more == "an error of collection" else ONCE), done.stdout
    if more in ("a failure", "a crash"):
        assert "failed twice:\n  test_it.py::test_more\n" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not AGAIN.exists(), reason="only in a checkout")
def test_that_nothing_was_found_is_no_success(tmp_path):
    done, listed = tried(tmp_path, TESTS, "-k", "no_such_name")
    assert (done.returncode, listed) == (5, [])
