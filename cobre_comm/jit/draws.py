"""Random numbers by name (``cobre_comm.random``) in ``@njit`` code.

The functions that draw are linked into the caller, so that a draw in a loop costs no call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cobre_kernels.machine.compiling.own_names import own_named
from cobre_kernels.random import draws
from cobre_kernels.random.philox import fold_names
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from cobre_comm.jit.arguments import as_int64
from cobre_comm.jit.attributes import naming
from cobre_comm.jit.types import carry_version
from cobre_comm.random import (
    BOUND_PROBLEM,
    INDEX_PROBLEM,
    KEY_PROBLEM,
    UNFIT,
    Key,
    integers,
    key,
    normal,
    uniform,
)


@intrinsic
def _carry_version(typingctx):
    """Make numba compile the present function, and its callers, anew after an upgrade."""

    def codegen(context, builder, signature, args):
        carry_version(context)
        return context.get_dummy_value()

    return types.void(), codegen


@register_jitable
def _word(integer):
    """Return an integer as an int64."""
    words, fits = as_int64((integer,))
    if not fits:
        raise ValueError(UNFIT)
    return words[0]


@register_jitable
def _limit(bound):
    """Return a bound as an int64 of at least 1."""
    limit = _word(bound)
    if limit < 1:
        raise ValueError(BOUND_PROBLEM)
    return limit


def _is_integer(argument):
    """Tell whether a type is that of an integer; a bool or a member of an enumeration is none."""
    return isinstance(argument, types.Integer)


def _is_index_array(argument):
    """Tell whether a type is that of an array of integers, all of which fit int64."""
    is_array = isinstance(argument, types.Array) and _is_integer(argument.dtype)
    return is_array and argument.dtype != types.uint64


def register_key(function: Any, key_class: Any) -> None:
    """Let ``@njit`` code call ``random.key``, which returns a ``key_class``."""

    @overload(function)
    @naming
    def typed(seed, *names):
        problem = ""
        for name in (seed, *names):
            if not _is_integer(name):
                problem = problem or f"key: a name must be an integer, got {name}"
        if problem:

            def refuse(seed, *names):
                raise TypeError(problem)

            return refuse

        def compiled(seed, *names):
            _carry_version()
            words, fit = as_int64((seed, *names))
            if not fit:
                raise ValueError(UNFIT)
            low, high = fold_names(words)
            return key_class(low, high)

        return compiled


def register_draw(function: Any, key_class: Any, draw: Any, dtype: Any) -> None:
    """Let ``@njit`` code call a function of ``cobre_comm.random``.

    ``function`` has the parameters ``key`` and ``i``, and perhaps ``bound``. ``draw`` makes one
    number of ``dtype``, and takes a bound in any case.
    """
    name = function.__name__

    def problem_of(key, i):
        if getattr(key, "instance_class", None) is not key_class:
            return KEY_PROBLEM.format(name, key)
        if not _is_integer(i) and not _is_index_array(i):
            return INDEX_PROBLEM.format(name, i)
        return ""

    def drawing(problem, i):
        if problem:

            def refuse(key, i, bound):
                raise TypeError(problem)

            return register_jitable(own_named(refuse))

        def one(key, i, bound):
            _carry_version()
            return draw(key.low, key.high, _word(i), _limit(bound))

        def many(key, i, bound):
            _carry_version()
            drawn = np.empty(i.shape, dtype)
            indices, numbers, limit = i.ravel(), drawn.ravel(), _limit(bound)
            for n in range(indices.size):
                numbers[n] = draw(key.low, key.high, np.int64(indices[n]), limit)
            return drawn

        return register_jitable(own_named(one if _is_integer(i) else many))

    def typed(key, i):
        drawn = drawing(problem_of(key, i), i)
        return lambda key, i: drawn(key, i, 1)

    def typed_with_bound(key, i, bound):
        problem = problem_of(key, i)
        if not problem and not _is_integer(bound):
            problem = f"{name}: bound must be an integer, got {bound}"
        drawn = drawing(problem, i)
        return lambda key, i, bound: drawn(key, i, bound)

    overload(function)(naming(typed_with_bound if dtype is np.int64 else typed))


@register_jitable
def _uniform(low, high, i, bound):
    return draws.draw_uniform(low, high, i)


@register_jitable
def _normal(low, high, i, bound):
    return draws.draw_normal(low, high, i)


register_key(key, Key)
register_draw(uniform, Key, _uniform, np.float64)
register_draw(normal, Key, _normal, np.float64)
register_draw(integers, Key, draws.draw_integer, np.int64)
