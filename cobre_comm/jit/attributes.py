"""Refuses attributes while ``@njit`` code is compiled: unknown ones; collectives in ``prange``.

numba asks these templates first, because they are registered before the methods.
"""

from __future__ import annotations

import difflib
import functools
from typing import Any

from cobre_kernels.machine.compiling.numba_internals import AttributeTemplate
from cobre_kernels.machine.compiling.own_names import own_named
from numba import TypingError, types
from numba.extending import infer_getattr, overload_attribute, overload_method

from cobre_comm.jit.holding import HeldMethod, QuickMethod, give_back_after
from cobre_comm.jit.types import CommType, ObjectType
from cobre_comm.old_names import new_name

PARALLEL_LOOP = "__numba_parfor_gufunc"  # numba's name of the function that it makes of a prange


def attribute(cls: type[ObjectType], name: str) -> Any:
    """Register an overload of an attribute."""
    cls.members[name] = False
    return _naming(overload_attribute(cls.lent, name))


def method(cls: type[ObjectType], name: str, *, in_prange: bool = True) -> Any:
    """Register an overload of a method that waits for no rank, so numba may remove its count."""
    cls.members[name] = False
    if not in_prange:
        cls.of_one_thread.add(name)
    return _method(cls, name)


def collective_method(name: str, cls: type[ObjectType] = CommType) -> Any:
    """Register an overload of a collective, which threads of ``prange`` must not call."""
    cls.members[name] = True
    return _method(cls, name)


def _method(cls: type[ObjectType], name: str) -> Any:
    give_back_after(cls.lent, name)
    return _naming(overload_method(cls.lent, name))


def _naming(register: Any) -> Any:
    return lambda choose: register(naming(choose))


def naming(choose: Any) -> Any:
    """Let an overload give a function name of its own to each implementation that it returns."""

    @functools.wraps(choose)
    def named(*arguments: Any, **more: Any) -> Any:
        chosen = choose(*arguments, **more)
        return None if chosen is None else own_named(chosen)

    return named


def is_in_parallel_loop(context: Any) -> bool:
    """Tell whether a function under compilation is the body of a parallel loop."""
    frames = getattr(context, "callstack", ())
    return any(frame.func_id.func_name.startswith(PARALLEL_LOOP) for frame in frames)


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]  # numba is untyped
    key = ObjectType

    def generic_resolve(self, value: Any, attribute: str) -> Any:
        """Return the type of an attribute; raise if it is unknown, or refused in ``prange``."""
        attribute = new_name(value.variable, attribute)
        if attribute not in value.members:
            raise TypingError(_missing(value, attribute))
        is_collective = value.members[attribute]
        is_of_one_thread = is_collective or attribute in value.of_one_thread
        if is_of_one_thread and is_in_parallel_loop(self.context):
            raise TypingError(
                f"{attribute} cannot be called inside prange, whose threads would enter it in any "
                "order; call it before or after the loop\nmore: cobre-comm explain prange"
            )
        for template in self.context._get_attribute_templates(value.borrowed):
            found = template.resolve(value.borrowed, attribute)
            if isinstance(found, types.BoundFunction):
                may_wait = is_collective and value.synchronises
                return (HeldMethod if may_wait else QuickMethod)(found.template, found.this)
            if found is not None:
                return found
        return None


def _missing(value: Any, attribute: str) -> str:
    """Return the message about an attribute that does not exist."""
    if attribute in value.said:
        return f"{value.variable}.{attribute} {value.said[attribute]}"
    names = value.names()
    close = difflib.get_close_matches(attribute, names, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"{value.what} has no {attribute!r} in @njit code{meant}; it has {', '.join(names)}"
