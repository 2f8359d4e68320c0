"""Functions from caches are never confused: each closure of ours has a name of its own."""

import json
import os

import pytest
from cobre_kernels.machine.compiling.own_names import copy_of, own_named

from tests.command import python

NOISE = """
import numpy as np
from numba import njit
from cobre_comm import random

@njit(cache=True)
def drawn(scenario):
    return random.{}(random.key(1, scenario), np.arange(4))
"""


def adder(number):
    def add(x):
        return x + number

    return add


def test_closures_have_names_by_what_they_close_over():
    names = [own_named(adder(number)).__qualname__ for number in (1, 2, 1, 1.0)]
    assert names[0] == names[2]
    assert len({*names}) == 3
    nested = [own_named(adder(adder(number))).__qualname__ for number in (1, 2)]
    assert nested[0] != nested[1]
    unknown = [own_named(adder(object())).__qualname__ for _ in range(2)]
    assert unknown[0] != unknown[1]


def test_a_function_that_closes_over_nothing_keeps_its_name():
    assert own_named(copy_of(python)).__qualname__ == python.__qualname__


def test_no_two_functions_of_ours_share_a_name():
    """A symbol is a function's name and a number, which another process may use as well."""
    found = json.loads(python("-m", "tests.jit.compiled_names", within_s=300).stdout)
    assert found["shared"] == {}
    assert found["names"] > 200, "the listener has missed functions"


def test_two_functions_from_caches_of_two_processes_draw_their_own_numbers(tmp_path):
    for name in ("normal", "uniform"):
        (tmp_path / f"of_{name}.py").write_text(NOISE.format(name))
    ask = "import of_{}; print(of_{}.drawn(7).tolist())"
    alone = [
        json.loads(python("-c", ask.format(name, name), cwd=tmp_path).stdout)
        for name in ("normal", "uniform")
    ]
    both = "import of_uniform as u, of_normal as n; print([x.drawn(7).tolist() for x in (n, u)])"
    assert json.loads(python("-c", both, cwd=tmp_path).stdout) == alone


@pytest.mark.slow
@pytest.mark.parametrize("level", ["0", "3"])
def test_every_two_functions_from_caches_keep_apart(tmp_path, level):
    """At level 0, LLVM inlines nothing, so each function keeps its symbol."""
    environment = {**os.environ, "NUMBA_OPT": level, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = "-m", "tests.jit.pairs_from_caches", str(tmp_path)
    found = json.loads(python(*program, env=environment).stdout)
    assert found["wrong"] == []
    # With NUMBA_OPT=0, numba caches no function that calls a function with a name of its own.
    assert found["pairs from caches"] > (1900 if level == "3" else 600), found["compiled anew"]
