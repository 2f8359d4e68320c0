"""``check_signals`` and ``monotonic_ns`` in ``@njit`` code.

The exception of a handler is kept in CPython's dictionary of the thread, in which
:class:`Interrupted` finds it. So the compiled code contains no address, and numba can cache the
code.
"""

from __future__ import annotations

import ctypes
from typing import Any, cast

from cobre_kernels.collective.waiting.patience import TICK_NS
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_relaxed, peek, store_relaxed
from cobre_kernels.machine.compiling.numba_internals import AbstractTemplate, cgutils
from llvmlite import ir
from numba import TypingError, types
from numba.extending import intrinsic, lower_builtin, overload, register_jitable

from cobre_comm.contract.clock import monotonic_ns
from cobre_comm.contract.signals import check_signals
from cobre_comm.jit.attributes import is_in_parallel_loop
from cobre_comm.jit.fields import in_frame
from cobre_comm.jit.types import carry_version

KEY = "cobre_comm.check_signals"


class Interrupted(Exception):
    """The class that ``@njit`` code raises; an instance of it is the signal handler's exception."""

    def __new__(cls, *values: Any) -> BaseException:  # type: ignore[misc]  # as failure.Failure
        """Return the exception of the handler."""
        found = values[0] if values else _thread_dictionary().get(KEY, KeyboardInterrupt())
        return cast(BaseException, found)


def _thread_dictionary() -> dict[str, Any]:
    find = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))
    return cast("dict[str, Any]", ctypes.cast(find(), ctypes.py_object).value)


@intrinsic
def _key(typingctx: Any) -> Any:
    """Return the address of KEY as a C string."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(context.insert_const_string(builder.module, KEY), cgutils.intp_t)

    return types.int64(), codegen


@intrinsic
def _looked_ns(typingctx: Any) -> Any:
    """Return the address of the word in which compiled code keeps the time of its last look."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.module.globals.get(KEY)
        if word is None:
            word = ir.GlobalVariable(builder.module, cgutils.intp_t, KEY)
            word.linkage, word.align = "internal", 8
            word.initializer = ir.Constant(cgutils.intp_t, 0)
        return builder.ptrtoint(word, cgutils.intp_t)

    return types.int64(), codegen


@register_jitable
def _is_due() -> Any:
    """Tell whether a thread without the GIL should look for signals again.

    A relaxed load and store suffice: at worst, two threads look for signals at the same time.
    """
    now = libc.monotonic_ns()
    looked = _looked_ns()
    if now - load_relaxed(looked) < TICK_NS or not libc.can_raise():
        return False
    store_relaxed(looked, now)
    return True


@register_jitable
def _keep_exception() -> None:
    kind, value, traceback = in_frame(0), in_frame(0), in_frame(0)
    libc.fetch_exception(kind, value, traceback)
    libc.normalize_exception(kind, value, traceback)
    libc.set_named_item(libc.thread_dictionary(), _key(), peek(value))
    for reference in (kind, value, traceback):
        libc.count_down(peek(reference))


@register_jitable
def _handler_raised() -> Any:
    has_gil = libc.gil_held()
    if not has_gil and not _is_due():
        return False
    ensured = types.int32(0) if has_gil else libc.gil_ensure()
    raised = libc.check_signals() != 0
    if raised:
        _keep_exception()
    if not has_gil:
        libc.gil_release(ensured)
    return raised


def _compiled() -> None:
    if _handler_raised():
        raise Interrupted


class _CheckSignals(AbstractTemplate):  # type: ignore[misc]  # numba is untyped
    key = check_signals

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature; raise inside a parallel loop."""
        if is_in_parallel_loop(self.context):
            raise TypingError(
                "check_signals cannot be called inside prange, where numba drops errors; call it "
                "before or after the loop"
            )
        return None if args or kws else types.none()


@lower_builtin(check_signals)
def _lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    carry_version(context)
    return context.compile_internal(builder, _compiled, signature, args)


check_signals._numba_type_ = types.Function(_CheckSignals)  # type: ignore[attr-defined]


@overload(monotonic_ns)
def _monotonic_ns():  # type: ignore[no-untyped-def]
    return lambda: libc.monotonic_ns()
