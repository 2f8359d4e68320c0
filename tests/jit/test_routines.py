"""Routines do what functions of ``@njit`` do, also in a process that loads their callers' code."""

import numpy as np
import pytest
from numba import config, njit

from cobre_comm import routine
from tests.command import python

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="a routine is then its function")

PROGRAM = """
import collections
import numpy as np
from numba import njit, objmode, prange
from cobre_comm import routine

Pair = collections.namedtuple("Pair", "a b")
TABLE = np.arange(5.0)

@routine
def plus(x, y=2.5):
    return x + y

@routine
def array(n):
    values = np.empty(n)
    for i in range(n):
        values[i] = i
    return values

@routine
def refuse(i):
    if i > 3:
        raise ValueError("too large", i)
    return i

@routine
def caught(i):
    try:
        refuse(i)
    except Exception:
        return -1
    return 1

@routine
def say(i):
    print("say", i, "of", 9)

@routine
def of_pair(pair):
    return pair.b, pair.a.sum() + TABLE[3]

@routine
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

@routine
def squares(n):
    for i in range(n):
        yield i * i

@routine
def containers(n):
    table = {}
    for i in range(n):
        table[i] = i * 1.5
    return [table[n - 1]]

@routine
def by_python(x):
    with objmode(y="float64"):
        y = float(x) * 3
    return y

@routine
def sum_of(function, n):
    total = 0
    for i in range(n):
        total += function(i)
    return total

@routine
def nested(n):
    def doubled(i):
        return 2 * i
    return sum_of(doubled, n) + sum([i for i in range(n)])

@routine
def divided(x, y):
    return x / y

def adder(k):
    @routine
    def add(x):
        return x + k
    return add

add = adder(7)

@njit(cache=True)
def calls():
    say(3)
    total = plus(1) + plus(1.0, 3) + plus(x=2, y=2) + array(5).sum() + caught(5) + caught(1)
    for i in squares(4):
        total += i
    return total, of_pair(Pair(np.arange(3.0), 5)), fibonacci(10), containers(4), add(3), nested(4)

@njit(cache=True)
def leaves():
    return by_python(2.0)

@njit(cache=True)
def raises():
    return refuse(5)

@njit(cache=True)
def divides(x):
    return divided(1.0, x)

@njit(cache=True, parallel=True)
def loops(n):
    total = 0.0
    for i in prange(n):
        total += plus(i)
    return total

for function, *arguments in (calls,), (leaves,), (raises,), (divides, 0.0), (loops, 10):
    try:
        print(function(*arguments))
    except (ValueError, ZeroDivisionError) as error:
        print(repr(error))
print(sum(sum(each.stats.cache_hits.values()) for each in (calls, leaves, raises, divides, loops)))
"""


# What the same functions do as those of `@njit`, in a process that compiles them.
PRINTED = """\
say 3 of 9
(35.5, (5, 6.0), 55, [4.5], 10, 18)
6.0
ValueError('too large', 5)
ZeroDivisionError('division by zero')
70.0
"""


def test_routines_do_what_functions_of_njit_do(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    for loaded in 0, 5:
        assert python(file, within_s=400).stdout == f"{PRINTED}{loaded}\n"


def test_a_routine_has_no_option_of_its_callers():
    for option in "cache", "parallel":
        with pytest.raises(TypeError, match=f"no option {option}; give it to the function that"):
            routine(**{option: True})


@routine(error_model="numpy")
def _ratio(x, y):
    """Divide."""
    return x / y


@njit
def _ratios(x):
    return _ratio(x, 0) + _ratio(x, 0.0)


def test_python_is_told_how_to_call_the_function_of_a_routine():
    with pytest.raises(TypeError, match=r"compiled code calls; here call _ratio\.py_func"):
        _ratio(1.0, 2.0)
    assert _ratio.py_func(1.0, 2.0) == 0.5
    assert (_ratio.__name__, _ratio.__doc__) == ("_ratio", "Divide.")


def test_a_constant_is_an_argument_like_any_other():
    assert _ratios(1.0) == np.inf
    assert len(_ratio.dispatcher.signatures) == 2  # an integer, and a float


MADE = """
import sys
from cobre_comm import routine
made = routine(lambda x: x)
print("numba" in sys.modules)
made.dispatcher
print("numba" in sys.modules)
"""


def test_a_routine_imports_numba_when_numba_first_meets_it():
    assert python("-c", MADE).stdout.split() == ["False", "True"]
