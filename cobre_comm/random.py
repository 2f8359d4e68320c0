"""Random numbers by name: the names of a number decide its value, whichever rank draws it.

A key stands for the names of what is drawn: a seed, an iteration, a scenario, a stage. Number ``i``
of a distribution is a function of a key and ``i`` alone, without any state. So the numbers are the
same however ranks share out the scenarios. And a job that continues from a checkpoint draws the
same numbers that it would have drawn without the stop.

The functions are the same in Python and in ``@njit`` code, for one ``i`` or for an array of them.
They give the same bits on every machine, because all callers run one implementation, which is
compiled without ``fastmath``, and consists of operations that IEEE 754 rounds.

A function that draws an inflow for each stage:

>>> from numba import njit
>>> from cobre_comm import random
>>> @njit
... def mean_inflow(seed, iteration, scenario, stages):
...     total = 0.0
...     for stage in range(stages):
...         key = random.key(seed, iteration, scenario, stage)
...         total += 50.0 + 5.0 * random.normal(key, 0)
...     return total / stages
>>> mean_inflow(1, 0, 7, 12)
49.47937680954872

Notes
-----
Philox4x32-10 of J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11,
doi:10.1145/2063384.2063405. ``numpy.random.Philox`` is Philox4x64-10, whose words are twice as
wide, so it gives other numbers. Do not use these numbers as secrets, because whoever sees some of
them can find the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.random import draws
from numpy.typing import NDArray

from cobre_comm import old_names
from cobre_comm.arguments.arrays import plain_array
from cobre_comm.arguments.numbers import as_integer
from cobre_comm.contract import numba_types
from cobre_comm.reports.tracebacks import tells_callers

__all__ = ["Key", "integers", "key", "normal", "uniform"]

BOUND_PROBLEM = "integers: bound must be at least 1"
INDEX_PROBLEM = "{}: i must be an integer, or an array of integers that fit int64, got {}"
KEY_PROBLEM = "{}: key must be what random.key returns, got {}"
UNFIT = "random: names, i and bound must fit 64-bit signed integers"

Int = int | np.integer[Any]
Indices = NDArray[np.integer[Any]]


class Key(NamedTuple):
    """The key that :func:`key` makes of names; a plain value to be kept, sent and compared.

    Attributes
    ----------
    low, high : int
        64 bits each, signed.

    Examples
    --------
    >>> from cobre_comm import random
    >>> random.key(1, 2) == random.key(1, 2)
    True
    """

    low: int
    high: int


@tells_callers
def key(seed: Int, *names: Int) -> Key:
    """Return the key of the numbers with these names.

    Parameters
    ----------
    seed, *names : int
        As many names as needed, such as iteration, scenario and stage: signed, of 64 bits. Their
        order counts, and so does their number: ``key(1)`` and ``key(1, 0)`` are different
        keys.

    Returns
    -------
    Key
        A key has 128 bits, so two lists of names have the same key with a probability of 2**-128.

    Raises
    ------
    TypeError
        If a name is no integer; a bool does not count as an integer.
    ValueError
        If a name does not fit 64 bits.

    Examples
    --------
    >>> from cobre_comm import random
    >>> key = random.key(2026, 3, 41, 7)  # seed, iteration, scenario, stage
    >>> random.uniform(key, 0)
    0.7891125271341172
    """
    given = np.array([_word("key", "a name", name) for name in (seed, *names)], np.int64)
    words = np.empty(2, np.int64)
    draws.key_kernel.call(words.ctypes.data, given.ctypes.data, given.size)
    return Key(*words.tolist())


@overload
def uniform(key: Key, i: Int) -> float: ...
@overload
def uniform(key: Key, i: Indices) -> NDArray[np.float64]: ...
@tells_callers
def uniform(key: Key, i: Int | Indices) -> float | NDArray[np.float64]:
    """Return number ``i`` of the uniform distribution on [0, 1).

    Parameters
    ----------
    key : Key
        From :func:`key`.
    i : int or int64 array
        The index of a number of the key, or an array of indices of any shape. The numbers of a key
        are independent of one another, and of the numbers that :func:`normal` and :func:`integers`
        make of the same ``i``.

    Returns
    -------
    float or ndarray
        float64, a multiple of 2**-53; of the shape of ``i``.

    Raises
    ------
    TypeError
        If ``key`` is no key, or if ``i`` is neither an integer nor an array of integers that fit
        int64.
    ValueError
        If ``i`` does not fit 64 bits.

    Examples
    --------
    >>> from cobre_comm import random
    >>> key = random.key(2026)
    >>> random.uniform(key, np.arange(3))
    array([0.65922986, 0.74392166, 0.42248051])
    """
    drawn: float | NDArray[np.float64] = _draw("uniform", draws.uniform_kernel, np.float64, key, i)
    return drawn


@overload
def normal(key: Key, i: Int) -> float: ...
@overload
def normal(key: Key, i: Indices) -> NDArray[np.float64]: ...
@tells_callers
def normal(key: Key, i: Int | Indices) -> float | NDArray[np.float64]:
    """Return number ``i`` of the normal distribution with mean 0 and standard deviation 1.

    The number is the quantile of a uniform number (AS 241 of M. J. Wichura, 1988), with a relative
    error of about 1e-16. No number is larger than 8.2.

    Parameters
    ----------
    key, i
        As for :func:`uniform`.

    Returns
    -------
    float or ndarray
        float64, of the shape of ``i``.

    Raises
    ------
    TypeError, ValueError
        As for :func:`uniform`.

    Examples
    --------
    >>> from cobre_comm import random
    >>> random.normal(random.key(2026, 5), 0)
    0.3304021731555479
    """
    drawn: float | NDArray[np.float64] = _draw("normal", draws.normal_kernel, np.float64, key, i)
    return drawn


@overload
def integers(key: Key, i: Int, bound: Int) -> int: ...
@overload
def integers(key: Key, i: Indices, bound: Int) -> NDArray[np.int64]: ...
@tells_callers
def integers(key: Key, i: Int | Indices, bound: Int) -> int | NDArray[np.int64]:
    """Return number ``i`` of the integers from 0 to ``bound - 1``, each as probable as any other.

    Parameters
    ----------
    key, i
        As for :func:`uniform`.
    bound : int
        From 1 to 2**63 - 1. No integer is favoured, even if the bound is large (D. Lemire, 2019).

    Returns
    -------
    int or ndarray
        int64, of the shape of ``i``.

    Raises
    ------
    TypeError, ValueError
        As for :func:`uniform`; also for a ``bound`` that cannot be used.

    Examples
    --------
    >>> from cobre_comm import random
    >>> random.integers(random.key(2026), np.arange(6), 10)
    array([1, 3, 9, 6, 3, 4])
    """
    limit = _word("integers", "bound", bound)
    if limit < 1:
        raise ValueError(BOUND_PROBLEM)
    drawn: int | NDArray[np.int64] = _draw(
        "integers", draws.integers_kernel, np.int64, key, i, limit
    )
    return drawn


def _word(function: str, name: str, value: object) -> int:
    """Return an integer of 64 bits."""
    number = as_integer(function, name, value)
    if not -draws.LARGEST - 1 <= number <= draws.LARGEST:
        raise ValueError(UNFIT)
    return number


def _draw(
    function: str, kernel: Kernel, dtype: type, key: object, i: object, bound: int = 0
) -> Any:
    """Make the kernel draw a number for each index."""
    if not isinstance(key, Key):
        raise TypeError(KEY_PROBLEM.format(function, type(key).__name__))
    if isinstance(i, np.ndarray):
        i = plain_array(function, "i", i)
        if i.dtype.kind not in "iu" or not np.can_cast(i.dtype, np.int64):
            raise TypeError(INDEX_PROBLEM.format(function, f"an array of {i.dtype}"))
        indices = np.ascontiguousarray(i, np.int64).reshape(-1)
    else:
        indices = np.array([_word(function, "i", i)])
    drawn: NDArray[Any] = np.empty(indices.size, dtype)
    kernel.call(drawn.ctypes.data, *key, indices.ctypes.data, indices.size, bound)
    return drawn.reshape(i.shape) if isinstance(i, np.ndarray) else drawn.item()


if not TYPE_CHECKING:  # checkers would believe that the module has every name

    def __getattr__(name: str) -> Any:
        new = old_names.new_name("random", name)
        if new == name:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[new]


numba_types.register()
