"""Attributes refused while ``@njit`` code is compiled: unknown ones, and collectives in ``prange``.

numba asks these templates first, because they are registered before the methods. An answer of None
lets it go on to the methods themselves.
"""

from __future__ import annotations

from typing import Any

from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from cobre_comm.jit.types import CommType, RegionType

COLLECTIVES = ("allgatherv", "allreduce", "barrier", "broadcast", "exact_sum", "fence")
PARALLEL_LOOP = "__numba_parfor_gufunc"  # what numba calls the function it makes of a prange


class _Attributes(AttributeTemplate):  # type: ignore[misc]  # numba is untyped
    def generic_resolve(self, value: Any, attribute: str) -> None:
        """Raise for an attribute that does not exist, or not here; return None otherwise."""
        if attribute not in self.names:
            raise TypingError(
                f"{self.what} has no {attribute!r} in @njit code; it has {', '.join(self.names)}"
            )
        if attribute in COLLECTIVES and self._is_in_parallel_loop():
            raise TypingError(
                f"{attribute} cannot be called inside prange, whose threads would enter it in any "
                "order; call it before or after the loop"
            )

    def _is_in_parallel_loop(self) -> bool:
        """Tell whether a function under compilation is the body of a parallel loop."""
        frames = getattr(self.context, "callstack", ())
        return any(frame.func_id.func_name.startswith(PARALLEL_LOOP) for frame in frames)


@infer_getattr
class _CommAttributes(_Attributes):
    key = CommType
    what = "a communicator"
    names = (
        "allgatherv", "allreduce", "barrier", "broadcast", "exact_sum", "is_leader", "rank", "size",
    )  # fmt: skip


@infer_getattr
class _RegionAttributes(_Attributes):
    key = RegionType
    what = "a shared region"
    names = ("as_slice", "fence")
