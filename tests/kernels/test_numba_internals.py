"""numba's private interfaces: our table of them is true; another numba is refused with advice."""

import re
import tomllib
from pathlib import Path

import pytest
from cobre_kernels.machine.compiling import numba_internals
from cobre_kernels.machine.compiling.numba_internals import BEYOND, OLDEST, TRIED, USED, missing

from tests.command import python

ROOT = Path(__file__).parents[2]
FOLDERS = ("kernels", "cobre_comm", "examples")
FILE = Path(numba_internals.__file__)
# Changes that a program makes to numba, and the problem that the error then names.
REFUSED = {
    "older": ("version('0.60.0', (0, 60))", "numba 0.60.0 does not fit"),
    "newer": ("version('0.69.0', (0, 69))", "numba 0.69.0 does not fit"),
    "a module that moved": (
        "del caching.IndexDataCacheFile", "cannot import name 'IndexDataCacheFile'"
    ),
    "a method that went": (
        "del caching.IndexDataCacheFile._load_index", "no IndexDataCacheFile._load_index(self)."
    ),
    "another parameter": (
        "caching.IndexDataCacheFile.load = lambda self, key, more: None",
        "no IndexDataCacheFile.load(self,key).",
    ),
    "a field that no constructor sets": (
        "codegen.CPUCodeLibrary.__init__ = lambda self: None", "JITCodeLibrary._linking_libraries"
    ),
}  # fmt: skip
PROGRAM = """
import numba
from numba.core import caching, codegen

def version(text, short):
    numba.__version__, numba.version_info = text, numba.version_info._replace(short=short)

{change}
import cobre_comm
comm = cobre_comm.create_communicator("local")
comm.barrier()  # Python needs no numba
try:
    numba.njit(lambda comm: comm.barrier())(comm)
except ImportError as error:
    print(error)
"""


@pytest.mark.quick
def test_this_numba_has_all_of_the_table():
    assert missing() == []


@pytest.mark.parametrize("case", REFUSED)
def test_another_numba_is_refused(case):
    change, problem = REFUSED[case]
    said = python("-c", PROGRAM.format(change=change)).stdout
    assert problem in said
    advice = "install one of these: pip install 'numba>=0.61,<0.69'\n"
    assert said.endswith(f"tried with {TRIED[0]} to {TRIED[-1]}; {advice}")


def test_the_bounds_are_those_of_the_package():
    bounds = f"numba>={OLDEST[0]}.{OLDEST[1]},<{BEYOND[0]}.{BEYOND[1]}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert bounds in project["dependencies"]
    tried = [tuple(map(int, version.split(".")[:2])) for version in TRIED]
    assert tried == [(0, minor) for minor in range(OLDEST[1], BEYOND[1])]


def test_the_table_names_nothing_that_is_not_used():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path != FILE]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    listed = {name.partition("(")[0] for names in USED.values() for name in names.split()}
    assert listed - words == set()
