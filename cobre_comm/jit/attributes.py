"""Attributes refused while ``@njit`` code is compiled: unknown ones, and collectives in ``prange``.

numba asks these templates first, because they are registered before the methods.
"""

from __future__ import annotations

import difflib
from typing import Any

from cobre_kernels.machine.numba_internals import AttributeTemplate
from numba import TypingError, types
from numba.extending import infer_getattr, overload_method

from cobre_comm.common.other_names import SAID
from cobre_comm.jit.holding import HeldMethod, QuickMethod, give_back_after
from cobre_comm.jit.types import BorrowedComm, CommType, RegionType

COLLECTIVES: set[str] = set()
PARALLEL_LOOP = "__numba_parfor_gufunc"  # what numba calls the function it makes of a prange


def method(cls: Any, name: str) -> Any:
    """Register an overload of a method, which its caller holds."""
    give_back_after(cls, name)
    return overload_method(cls, name)


def collective_method(name: str, cls: Any = BorrowedComm) -> Any:
    """Register an overload of a collective, which threads of ``prange`` must not call."""
    COLLECTIVES.add(name)
    return method(cls, name)


def is_in_parallel_loop(context: Any) -> bool:
    """Tell whether a function under compilation is the body of a parallel loop."""
    frames = getattr(context, "callstack", ())
    return any(frame.func_id.func_name.startswith(PARALLEL_LOOP) for frame in frames)


class _Attributes(AttributeTemplate):  # type: ignore[misc]  # numba is untyped
    def generic_resolve(self, value: Any, attribute: str) -> Any:
        """Return the type of an attribute; raise if it does not exist, or not here."""
        if attribute not in self.names:
            raise TypingError(self._missing(attribute))
        if attribute in COLLECTIVES and is_in_parallel_loop(self.context):
            raise TypingError(
                f"{attribute} cannot be called inside prange, whose threads would enter it in any "
                "order; call it before or after the loop"
            )
        for template in self.context._get_attribute_templates(value.borrowed):
            found = template.resolve(value.borrowed, attribute)
            if isinstance(found, types.BoundFunction):
                may_wait = attribute in COLLECTIVES and value.synchronises
                return (HeldMethod if may_wait else QuickMethod)(found.template, found.this)
            if found is not None:
                return found
        return None

    def _missing(self, attribute: str) -> str:
        """Return what is said of an attribute that does not exist."""
        close = difflib.get_close_matches(attribute, self.names, 1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        return (
            f"{self.what} has no {attribute!r} in @njit code{meant}; it has {', '.join(self.names)}"
        )


@infer_getattr
class _CommAttributes(_Attributes):
    key = CommType
    what = "a communicator"

    @property
    def names(self) -> tuple[str, ...]:
        """What a communicator has in compiled code."""
        return (*sorted(COLLECTIVES - {"fence"}), "is_leader", "rank", "size", "stop_requested")

    def _missing(self, attribute: str) -> str:
        if attribute in SAID:
            return f"comm.{attribute} {SAID[attribute]}"
        return super()._missing(attribute)


@infer_getattr
class _RegionAttributes(_Attributes):
    key = RegionType
    what = "a shared region"
    names = ("as_slice", "block", "count", "fence", "nbytes")
