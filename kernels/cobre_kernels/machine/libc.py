"""C functions by name: clock, scheduler, futex, record locks, sockets, and those of CPython.

All external functions of the kernels are here, but for those of MPI (``mpi/calls.py``). The linker
of the process that runs the code resolves their names, so nothing here puts an address into a
cached kernel. ``syscall`` and ``fcntl`` are declared variadic, because some ABIs (macOS on arm64)
pass variadic arguments differently.

Sources: futex(2), fcntl(2), clock_gettime(2), nanosleep(2), sched_yield(2), recv(2), sendmsg(2),
poll(2), errno(3), and XNU's headers for the numbers of macOS; CPython's C API,
"Initialization, Finalization, and Threads", "Exception Handling" and "Concrete Objects Layer".
"""

import ctypes
import platform
import sys
import time

import numpy as np
from llvmlite import ir
from numba import carray, config, types
from numba.extending import intrinsic

from cobre_kernels.machine.atomics import WORD_BYTES, peek, poke
from cobre_kernels.machine.kernel import as_pointer
from cobre_kernels.machine.numba_internals import cgutils
from cobre_kernels.machine.routine import routine

IS_LINUX = sys.platform == "linux"
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), -1) if IS_LINUX else -1
HAS_FUTEX = SYS_FUTEX >= 0
FUTEX_WAIT = 0
FUTEX_WAKE = 1
WAKE_ALL = 2**31 - 1
CLOCK_REALTIME = 0
CLOCK_MONOTONIC = 1 if IS_LINUX else 6
NS_PER_S = 1_000_000_000

# struct flock in 64-bit words. Linux: {type:16, whence:16, pad:32} {start} {len} {pid:32}.
# macOS: {start} {len} {pid:32, type:16, whence:16}. Whence 0 is SEEK_SET.
F_GETLK = 5 if IS_LINUX else 7
F_WRLCK = 1 if IS_LINUX else 3
F_UNLCK = 2
FLOCK_TYPE_WORD = 0 if IS_LINUX else 2
FLOCK_TYPE_SHIFT = 0 if IS_LINUX else 32
FLOCK_START_WORD = 1 if IS_LINUX else 0
FLOCK_LENGTH_WORD = 2 if IS_LINUX else 1
FLOCK_PID_WORD = 3 if IS_LINUX else 2  # its lower half
SCRATCH_WORDS = 4  # room for a timespec or a struct flock, in private memory of the caller

CAN_READ_PROCESSES = IS_LINUX  # if the system permits it

# Sockets. MSG_NOSIGNAL is the option SO_NOSIGPIPE on macOS.
MSG_NOSIGNAL = 0x4000 if IS_LINUX else 0
EINTR = 4
EBADF = 9
EAGAIN = 11 if IS_LINUX else 35
ETIMEDOUT = 110 if IS_LINUX else 60
EHOSTUNREACH = 113 if IS_LINUX else 65
POLLIN = 1
POLLOUT = 4

NOTHING_IS_COMPILED = bool(config.DISABLE_JIT)
_INT = types.int32
_LONG = types.int64  # long, and any pointer
_C_TYPES = {_INT: ctypes.c_int, _LONG: ctypes.c_int64, types.void: None}


def _external(name, signature):
    if not config.DISABLE_JIT:
        return types.ExternalFunction(name, signature)
    if name.startswith("Py"):  # the interpreter itself looks after the GIL and the signals
        return lambda *arguments: 0
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = _C_TYPES[signature.return_type]
    function.argtypes = [_C_TYPES[a] for a in signature.args]
    return function


sched_yield = _external("sched_yield", _INT())
nanosleep = _external("nanosleep", _INT(_LONG, _LONG))
gil_held = _external("PyGILState_Check", _INT())
gil_ensure = _external("PyGILState_Ensure", _INT())
gil_release = _external("PyGILState_Release", types.void(_INT))
_thread_state = _external("PyGILState_GetThisThreadState", _LONG())
save_thread = _external("PyEval_SaveThread", _LONG())
restore_thread = _external("PyEval_RestoreThread", types.void(_LONG))
check_signals = _external("PyErr_CheckSignals", _INT())
_recv = _external("recv", _LONG(_INT, _LONG, _LONG, _INT))
_sendmsg = _external("sendmsg", _LONG(_INT, _LONG, _INT))
_recvmsg = _external("recvmsg", _LONG(_INT, _LONG, _INT))
_write = _external("write", _LONG(_INT, _LONG, _LONG))
_poll = _external("poll", _INT(_LONG, _LONG, _INT))
_read_process = (
    _external("process_vm_readv", _LONG(_INT, _LONG, _LONG, _LONG, _LONG, _LONG))
    if CAN_READ_PROCESSES
    else None
)
_errno_location = _external("__errno_location" if IS_LINUX else "__error", _LONG())
fetch_exception = _external("PyErr_Fetch", types.void(_LONG, _LONG, _LONG))
normalize_exception = _external("PyErr_NormalizeException", types.void(_LONG, _LONG, _LONG))
clear_exception = _external("PyErr_Clear", types.void())
refuse_object = _external("PyErr_BadArgument", _INT())  # raises TypeError, returns 0
count_up = _external("Py_IncRef", types.void(_LONG))
count_down = _external("Py_DecRef", types.void(_LONG))
integer_of = _external("PyLong_AsLongLong", _LONG(_LONG))
new_integer = _external("PyLong_FromLongLong", _LONG(_LONG))
new_tuple = _external("PyTuple_New", _LONG(_LONG))
tuple_size = _external("PyTuple_Size", _LONG(_LONG))
tuple_item = _external("PyTuple_GetItem", _LONG(_LONG, _LONG))  # borrowed
set_item = _external("PyTuple_SetItem", _INT(_LONG, _LONG, _LONG))  # takes the count over
thread_dictionary = _external("PyThreadState_GetDict", _LONG())  # borrowed
set_named_item = _external("PyDict_SetItemString", _INT(_LONG, _LONG, _LONG))
call_object = _external("PyObject_CallObject", _LONG(_LONG, _LONG))

if not config.DISABLE_JIT:
    _I32, _I64 = ir.IntType(32), ir.IntType(64)

    def _declare(builder, name, function_type):
        known = builder.module.globals.get(name)
        return ir.Function(builder.module, function_type, name) if known is None else known

    def _clock(number):
        """Make the typing of a reading of a clock, in nanoseconds."""

        def typing(typingctx):
            def codegen(context, builder, signature, args):
                # Once per function, in its first block: in a loop it would grow the stack.
                timespec = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
                zero, one = ir.Constant(_I32, 0), ir.Constant(_I32, 1)
                seconds = builder.gep(timespec, [zero, zero])
                callee = _declare(
                    builder, "clock_gettime", ir.FunctionType(_I32, [_I32, _I64.as_pointer()])
                )
                builder.call(callee, [ir.Constant(_I32, number), seconds])
                nanoseconds = builder.load(builder.gep(timespec, [zero, one]))
                scaled = builder.mul(builder.load(seconds), ir.Constant(_I64, NS_PER_S))
                return builder.add(scaled, nanoseconds)

            return types.int64(), codegen

        return typing

    monotonic_ns = intrinsic(_clock(CLOCK_MONOTONIC))
    monotonic_ns.__doc__ = "Nanoseconds of the monotonic clock, as ``time.monotonic_ns``."
    realtime_ns = intrinsic(_clock(CLOCK_REALTIME))
    realtime_ns.__doc__ = "Nanoseconds since 1970, as ``time.time_ns``; machines agree roughly."

    @intrinsic
    def _futex(typingctx, address, operation, value, timespec):
        def codegen(context, builder, signature, args):
            callee = _declare(builder, "syscall", ir.FunctionType(_I64, [_I64], var_arg=True))
            return builder.call(callee, [ir.Constant(_I64, SYS_FUTEX), *args])

        return types.int64(*[types.int64] * 4), codegen

    @intrinsic
    def _fcntl(typingctx, fd, command, pointer):
        def codegen(context, builder, signature, args):
            callee = _declare(builder, "fcntl", ir.FunctionType(_I32, [_I32, _I32], var_arg=True))
            fd_and_command = [builder.trunc(a, _I32) for a in args[:2]]
            return builder.sext(builder.call(callee, [*fd_and_command, args[2]]), _I64)

        return types.int64(*[types.int64] * 3), codegen

    @routine
    def _errno():
        return np.int64(carray(as_pointer(_errno_location()), 1, np.int32)[0])

else:
    monotonic_ns = time.monotonic_ns
    realtime_ns = time.time_ns
    _errno = ctypes.get_errno  # the interpreter's own calls would overwrite the real one

    def _futex(address, operation, value, timespec):
        number, *rest = (
            ctypes.c_int64(a) for a in (SYS_FUTEX, address, operation, value, timespec)
        )
        return ctypes.CDLL(None).syscall(number, *rest)

    def _fcntl(fd, command, pointer):
        return ctypes.CDLL(None).fcntl(int(fd), int(command), ctypes.c_int64(pointer))


@routine
def _write_timespec(scratch, duration_ns):
    poke(scratch, duration_ns // NS_PER_S)
    poke(scratch + WORD_BYTES, duration_ns % NS_PER_S)


@routine
def sleep_ns(duration_ns, scratch):
    """Sleep; a signal ends the sleep early."""
    _write_timespec(scratch, duration_ns)
    nanosleep(scratch, 0)


@routine
def futex_wait(address, expected, timeout_ns, scratch):
    """Sleep while the low 32 bits of the word at ``address`` are those of ``expected``.

    Ends at a wake-up, a signal, the timeout, or at once when the value differs; the caller looks
    again in any case. The low half is at ``address`` itself: both supported CPUs are little-endian.
    """
    _write_timespec(scratch, timeout_ns)
    _futex(address, FUTEX_WAIT, expected & 0xFFFFFFFF, scratch)


@routine
def futex_wake_all(address):
    """Wake all threads and processes that sleep on ``address``."""
    _futex(address, FUTEX_WAKE, WAKE_ALL, 0)


@routine
def _result_or_errno(result):
    """Turn the -1 of a C function into minus its errno."""
    if result >= 0:
        return result
    return -_errno()


@routine
def receive(fd, address, count):
    """Receive up to ``count`` bytes; return how many, 0 at the end of the stream, or -errno."""
    return _result_or_errno(_recv(fd, address, count, 0))


@routine
def receive_message(fd, message):
    """Receive to the addresses of a ``struct msghdr``; return as :func:`receive`."""
    return _result_or_errno(_recvmsg(fd, message, 0))


@routine
def write(fd, address, count):
    """Write up to ``count`` bytes to a file; return how many were taken, or -errno."""
    return _result_or_errno(_write(fd, address, count))


@routine
def send_message(fd, message):
    """Send from the addresses of a ``struct msghdr``; return how many bytes went, or -errno."""
    return _result_or_errno(_sendmsg(fd, message, MSG_NOSIGNAL))


@routine
def poll(entries, count, timeout_ms):
    """Wait for events on ``count`` descriptors; return how many have some, or -errno."""
    return _result_or_errno(_poll(entries, count, timeout_ms))


@routine
def read_process(pid, here, there, count):
    """Copy memory of another process: so many ``struct iovec`` from there to here.

    Returns how many bytes came, or -1; see process_vm_readv(2).
    """
    return _read_process(pid, here, count, there, count, 0)


@routine
def can_raise():
    """Tell whether Python knows this thread; in others, as in a prange, numba drops errors."""
    return NOTHING_IS_COMPILED or _thread_state() != 0


@routine
def release_gil():
    """Give the GIL away if this thread holds it; return the thread state for :func:`regain_gil`."""
    return save_thread() if gil_held() != 0 else 0


@routine
def regain_gil(thread):
    """Undo :func:`release_gil`."""
    if thread != 0:
        restore_thread(thread)


@routine
def lock_is_held(fd, byte, scratch):
    """Tell whether another process holds the record lock on one byte of a file.

    The operating system drops the lock when its holder dies, also across PID namespaces, and while
    the holder is still a zombie, which ``kill(pid, 0)`` sees as alive. Errors count as held.
    """
    for word in range(SCRATCH_WORDS):
        poke(scratch + word * WORD_BYTES, 0)
    poke(scratch + FLOCK_TYPE_WORD * WORD_BYTES, F_WRLCK << FLOCK_TYPE_SHIFT)
    poke(scratch + FLOCK_START_WORD * WORD_BYTES, byte)
    poke(scratch + FLOCK_LENGTH_WORD * WORD_BYTES, 1)
    if _fcntl(fd, F_GETLK, scratch) != 0:
        return True
    found = peek(scratch + FLOCK_TYPE_WORD * WORD_BYTES) >> FLOCK_TYPE_SHIFT
    return (found & 0xFFFF) != F_UNLCK
