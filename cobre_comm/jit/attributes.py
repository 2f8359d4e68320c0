"""Attributes refused while ``@njit`` code is compiled: unknown ones, and collectives in ``prange``.

numba asks these templates first, because they are registered before the methods.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import models, overload_method, register_model

from cobre_comm.jit.types import CommType, RegionType
from cobre_comm.jit.values import COMM_TYPE

COLLECTIVES = {"fence"}  # and the names of the overloads of collective_method
PARALLEL_LOOP = "__numba_parfor_gufunc"  # what numba calls the function it makes of a prange


class BorrowedMethod(types.BoundFunction):
    """A method that is called at once: it needs no count of its own on what it is bound to."""


@register_model(BorrowedMethod)
class _BorrowedModel(models.StructModel):  # type: ignore[misc]  # numba is untyped
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        members = [("comm", COMM_TYPE), ("owner", types.voidptr)]
        if isinstance(fe_type.this, RegionType):
            members += [("identity", types.int64), ("view", fe_type.this.view)]
        super().__init__(dmm, fe_type, members)


def collective_method(name: str) -> Any:
    """Register an overload of a collective, which threads of ``prange`` must not call."""
    COLLECTIVES.add(name)
    return overload_method(CommType, name)


def is_in_parallel_loop(context: Any) -> bool:
    """Tell whether a function under compilation is the body of a parallel loop."""
    frames = getattr(context, "callstack", ())
    return any(frame.func_id.func_name.startswith(PARALLEL_LOOP) for frame in frames)


class _Attributes(AttributeTemplate):  # type: ignore[misc]  # numba is untyped
    def generic_resolve(self, value: Any, attribute: str) -> Any:
        """Return the type of an attribute; raise if it does not exist, or not here."""
        if attribute not in self.names:
            raise TypingError(
                f"{self.what} has no {attribute!r} in @njit code; it has {', '.join(self.names)}"
            )
        if attribute in COLLECTIVES and is_in_parallel_loop(self.context):
            raise TypingError(
                f"{attribute} cannot be called inside prange, whose threads would enter it in any "
                "order; call it before or after the loop"
            )
        for template in self.context._get_attribute_templates(value):
            found = None if template is self else template.resolve(value, attribute)
            if found is not None:
                is_method = isinstance(found, types.BoundFunction)
                return BorrowedMethod(found.template, found.this) if is_method else found
        return None


@infer_getattr
class _CommAttributes(_Attributes):
    key = CommType
    what = "a communicator"

    @property
    def names(self) -> tuple[str, ...]:
        """What a communicator has in compiled code."""
        return (*sorted(COLLECTIVES - {"fence"}), "is_leader", "rank", "size", "stop_requested")


@infer_getattr
class _RegionAttributes(_Attributes):
    key = RegionType
    what = "a shared region"
    names = ("as_slice", "block", "count", "fence", "nbytes")
