"""A cache that another version has left is never used, and makes no program fail.

The same holds for a cache in which files are mixed up, because ranks saved at the same time.
"""

import pathlib
import pickle

import pytest
from numba import types as numba_types

from cobre_comm import jit
from cobre_comm.jit import types
from release.upgrades import EDITS
from tests.command import python

TYPES = [
    (types.CommType, ()),
    (types.LocalCommType, ()),
    (types.RegionType, (numba_types.int8, 2, True)),
    (types.WorkType, ()),
]
each_type = pytest.mark.parametrize(("cls", "arguments"), TYPES)


@each_type
def test_types_come_back_from_a_cache_of_this_version(cls, arguments):
    assert pickle.loads(pickle.dumps(cls(*arguments))) == cls(*arguments)


def test_the_types_of_all_objects_are_tried_here():
    assert {cls for cls, _ in TYPES} == set(types.OBJECT_TYPES)


def of_another_version(cls, *arguments):
    """Return a type made without its constructor, by which numba would come to know the type."""
    other = object.__new__(cls)
    vars(other).update(vars(cls(*arguments)))
    other.name = f"{cls.__name__}(0123456789abcdef)"
    return other


@pytest.mark.parametrize("times", [1, 2])
@each_type
def test_types_of_another_version_equal_none_of_this_one(cls, arguments, times):
    restored = of_another_version(cls, *arguments)
    for _ in range(times):  # numba may write to a cache what it has read from a cache
        restored = pickle.loads(pickle.dumps(restored))
    assert restored.name == f"{cls.__name__}(0123456789abcdef)"
    assert restored != cls(*arguments)


TWO_SIGNATURES = """
import numpy as np
from cobre_comm import create_communicator
from numba import njit

@njit(cache=True)
def twice(comm, x):
    return 2 * comm.size * x[0]

@njit(cache=True)
def early(x):
    return 2 * x[0]

before = early(np.array([3])), early(np.array([0.25]))
comm = create_communicator("local")
after = twice(comm, np.array([3])), twice(comm, np.array([0.25]))
print(*before, early.stats.cache_hits.total(), *after, twice.stats.cache_hits.total())
"""


def test_code_of_another_signature_is_not_run(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TWO_SIGNATURES)

    def run_program():
        return python(program).stdout.strip()

    assert run_program() == "6 0.5 0 6 0.5 0"
    for name in ("twice", "early"):
        one, other = (tmp_path / "__pycache__").glob(f"program.{name}-*.nbc")
        swapped = other.read_bytes()
        other.write_bytes(one.read_bytes())
        one.write_bytes(swapped)
    assert run_program() == "6 0.5 0 6 0.5 0", "code in the wrong file is compiled again"
    assert run_program() == "6 0.5 2 6 0.5 2", "compiled code is in the right file now"


def test_a_class_that_has_gone():
    assert types.restored("GoneType(0123456789abcdef)", "GoneType").name.startswith("GoneType")


def test_types_of_version_0_1_0_can_be_loaded():
    for name in ("LocalCommType", "ShmCommType", "TcpCommType", "MpiCommType", "RegionType"):
        assert issubclass(getattr(jit, name), numba_types.Type)


def test_the_release_check_can_make_another_version():
    root = pathlib.Path(__file__).parents[2]
    for path, (old, new) in EDITS.items():
        assert old != new
        assert (root / path).read_text().count(old) == 1, path
