"""Routines do what functions of ``@njit`` do, also where their callers come from a cache."""

import warnings
from functools import reduce

import numpy as np
import pytest
from numba import NumbaExperimentalFeatureWarning, TypingError, config, njit, types

from cobre_comm.contract.routine import routine
from tests.command import python

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="a routine is then its function")

PROGRAM = """
import collections
import numpy as np
from numba import njit, objmode, prange
from cobre_comm.contract.routine import routine

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

@njit(cache=True, parallel=True)
def shared(n):
    total = 0
    for i in prange(n):
        total += i
    return total

@routine
def by_one(n):
    return shared(n)

@routine
def by_two(n):
    return by_one(n)

@njit(cache=True)
def below(n):
    return by_two(n)

for function, *arguments in (calls,), (leaves,), (raises,), (divides, 0.0), (loops, 10), (below, 5):
    try:
        print(function(*arguments))
    except (ValueError, ZeroDivisionError) as error:
        print(repr(error))
cached = calls, leaves, raises, divides, loops, below
print(sum(sum(each.stats.cache_hits.values()) for each in cached))
"""


# What the program prints in a process that compiles its routines as functions of `@njit`.
PRINTED = """\
say 3 of 9
(35.5, (5, 6.0), 55, [4.5], 10, 18)
6.0
ValueError('too large', 5)
ZeroDivisionError('division by zero')
70.0
10
"""


def test_routines_do_what_functions_of_njit_do(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    for loaded in 0, 6:
        assert python(file, within_s=400).stdout == f"{PRINTED}{loaded}\n"


def test_a_routine_has_no_option_of_its_callers():
    for option in "cache", "parallel":
        with pytest.raises(TypeError, match=f"no option {option}; give it to the function that"):
            routine(**{option: True})


@routine
def _doubled(x):
    return 2 * x


@routine
def _tripled(x):
    return 3 * x


@routine
def _added(x, y):
    return x + y


@routine
def _first(n):
    values = np.arange(n)
    for i in range(n):
        yield values[i] + 0.5


@njit
def _values(i):
    function = _doubled if i > 0 else _tripled
    return function(7), reduce(_added, [1, 2, 3], 10)


@njit
def _left(n):
    return _first(n)


def test_a_routine_is_a_value_in_compiled_code():
    with warnings.catch_warnings(category=NumbaExperimentalFeatureWarning, action="ignore"):
        assert (_values(0), _values(1)) == ((21, 16), (14, 16))


def test_the_generator_of_a_routine_goes_to_python():
    assert list(_left(3)) == [0.5, 1.5, 2.5]


@routine
def _is_even(n):
    if n == 0:
        return True
    return _is_odd(n - 1)


@routine
def _is_odd(n):
    if n == 0:
        return False
    return _is_even(n - 1)


@njit
def _counted(n):
    if n == 0:
        return 0
    return _one_more(n - 1)


@routine
def _one_more(n):
    if n == 0:
        return 1
    return 1 + _counted(n)


@routine
def _of_other_types(n, x):
    if n <= 0:
        return 1.5
    return _of_other_types(n - 1, x * 1.5)


@pytest.mark.parametrize(
    "calls",
    [
        lambda n: _is_even(n),
        lambda n: _is_odd(n),
        lambda n: _counted(n),
        lambda n: _one_more(n),
        lambda n: _of_other_types(n, 1),
    ],
)
def test_a_recursion_through_other_functions_is_refused(calls):
    cure = "decorate the functions of the recursion with numba.njit"
    with pytest.raises(TypingError, match=cure):
        njit(calls)(4)


def test_an_argument_that_has_the_type_of_a_function_is_no_routine():
    kind = types.FunctionType(types.int64(types.int64))
    apply = njit(types.int64(kind, types.int64))(lambda function, x: function(x))
    with pytest.raises(TypeError, match=r"has no address: .*pass numba.njit\(_doubled.py_func\)"):
        apply(_doubled, 3)
    assert apply(njit(_doubled.py_func), 3) == 6


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
    # one signature is for an integer, one for a float
    assert len(_ratio.dispatcher.signatures) == 2


MADE = """
import sys
from cobre_comm.contract.routine import routine
made = routine(lambda x: x)
print("numba" in sys.modules)
made.dispatcher
print("numba" in sys.modules)
"""


def test_a_routine_imports_numba_when_numba_first_meets_it():
    assert python("-c", MADE).stdout.split() == ["False", "True"]
