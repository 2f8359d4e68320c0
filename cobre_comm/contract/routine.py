"""``routine``: functions that ``@njit`` code alone calls, and that take less time to compile.

The example of this package uses routines: they save two thirds of its compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from cobre_kernels.machine import compiled

F = TypeVar("F", bound=Callable[..., Any])


@overload
def routine(function: F) -> F: ...


@overload
def routine(**options: Any) -> Callable[[F], F]: ...


def routine(function: Any = None, **options: Any) -> Any:
    """Decorate a function that only ``@njit`` code calls, so that large programs compile sooner.

    numba makes machine code of each ``@njit`` function, once more for its copy in each function
    that calls it, and once more for each pattern of constants that callers pass. A routine becomes
    machine code only as a part of the functions that call it, and a constant is an argument like
    any other.

    Parameters
    ----------
    function : callable
        The function. It may do all that ``@njit`` code may, and call routines. It may call itself
        directly, with arguments of the same types, but not through other functions.
    **options
        Options of ``numba.njit``, such as ``nogil``, ``error_model``, ``fastmath``,
        ``boundscheck``.

    Returns
    -------
    callable
        The routine; its ``py_func`` is the function. With ``NUMBA_DISABLE_JIT=1``, the function
        itself.

    Raises
    ------
    TypeError
        For the options ``cache`` and ``parallel``, which belong to the functions that call the
        routine. Also if Python calls the routine, or passes it as an argument that has the type of
        a function: pass ``numba.njit(f.py_func)`` instead.

    Notes
    -----
    numba's cache looks at the file of the cached function alone: after a change of a routine in
    another file, delete the caller's cached code.

    Examples
    --------
    >>> from numba import njit
    >>> from cobre_comm.contract.routine import routine
    >>> @routine
    ... def square(x):
    ...     return x * x
    >>> @njit
    ... def sum_of_squares(values):
    ...     total = 0.0
    ...     for value in values:
    ...         total += square(value)
    ...     return total
    >>> sum_of_squares(np.arange(4.0))
    14.0
    """
    refused = sorted({"cache", "parallel"} & set(options))
    if refused:
        raise TypeError(f"a routine has no option {refused[0]}; give it to the function that calls")
    return compiled.routine(function, **{"error_model": "python", **options})
