"""C functions by name: clock, scheduler, futex, record locks, sockets, and those of CPython.

All external functions of the kernels are here, except for the functions of MPI (``mpi/calls.py``).
The linker of the process that runs the code resolves their names, so machine code contains no
address of them. ``syscall`` and ``fcntl`` are declared variadic, because some ABIs (macOS on arm64)
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

from cobre_kernels.machine.atomics import WORD_BYTES, peek, poke
from cobre_kernels.machine.code import CURRENT_STATE
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED, CFunction, instruction, routine
from cobre_kernels.machine.elements import element_access

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

CAN_REACH_PROCESSES = IS_LINUX  # if the system permits it

# Sockets. On macOS the option SO_NOSIGPIPE of a socket does what MSG_NOSIGNAL does on Linux.
MSG_NOSIGNAL = 0x4000 if IS_LINUX else 0
EINTR = 4
EBADF = 9
EAGAIN = 11 if IS_LINUX else 35
ETIMEDOUT = 110 if IS_LINUX else 60
EHOSTUNREACH = 113 if IS_LINUX else 65
POLLIN = 1
POLLOUT = 4

_INT, _LONG = ctypes.c_int, ctypes.c_int64  # _LONG: long, and any pointer
sched_yield = CFunction("sched_yield", _INT)
nanosleep = CFunction("nanosleep", _INT, _LONG, _LONG)
gil_ensure = CFunction("PyGILState_Ensure", _INT)
gil_release = CFunction("PyGILState_Release", None, _INT)
_thread_state = CFunction("PyGILState_GetThisThreadState", _LONG)
_current_state = CFunction(CURRENT_STATE, _LONG)
save_thread = CFunction("PyEval_SaveThread", _LONG)
restore_thread = CFunction("PyEval_RestoreThread", None, _LONG)
check_signals = CFunction("PyErr_CheckSignals", _INT)
_recv = CFunction("recv", _LONG, _INT, _LONG, _LONG, _INT)
_sendmsg = CFunction("sendmsg", _LONG, _INT, _LONG, _INT)
_recvmsg = CFunction("recvmsg", _LONG, _INT, _LONG, _INT)
_write = CFunction("write", _LONG, _INT, _LONG, _LONG)
_poll = CFunction("poll", _INT, _LONG, _LONG, _INT)
_OF_PROCESSES = (_LONG, _INT, _LONG, _LONG, _LONG, _LONG, _LONG)
_read_process = CFunction("process_vm_readv", *_OF_PROCESSES) if CAN_REACH_PROCESSES else None
_write_process = CFunction("process_vm_writev", *_OF_PROCESSES) if CAN_REACH_PROCESSES else None
_errno_location = CFunction("__errno_location" if IS_LINUX else "__error", _LONG)
fetch_exception = CFunction("PyErr_Fetch", None, _LONG, _LONG, _LONG)
normalize_exception = CFunction("PyErr_NormalizeException", None, _LONG, _LONG, _LONG)
clear_exception = CFunction("PyErr_Clear", None)
refuse_object = CFunction("PyErr_BadArgument", _INT)  # raises TypeError, returns 0
count_up = CFunction("Py_IncRef", None, _LONG)
count_down = CFunction("Py_DecRef", None, _LONG)
integer_of = CFunction("PyLong_AsLongLong", _LONG, _LONG)
new_integer = CFunction("PyLong_FromLongLong", _LONG, _LONG)
new_tuple = CFunction("PyTuple_New", _LONG, _LONG)
tuple_size = CFunction("PyTuple_Size", _LONG, _LONG)
tuple_item = CFunction("PyTuple_GetItem", _LONG, _LONG, _LONG)  # a borrowed reference
set_item = CFunction("PyTuple_SetItem", _INT, _LONG, _LONG, _LONG)  # takes the reference over
thread_dictionary = CFunction("PyThreadState_GetDict", _LONG)  # a borrowed reference
set_named_item = CFunction("PyDict_SetItemString", _INT, _LONG, _LONG, _LONG)
call_object = CFunction("PyObject_CallObject", _LONG, _LONG, _LONG)

_allocate = CFunction("calloc", _LONG, _LONG, _LONG)
release_memory = CFunction("free", None, _LONG)

_load_int = element_access(np.int32)[0]


@instruction
def monotonic_ns():
    """Nanoseconds of the monotonic clock, as ``time.monotonic_ns``."""
    return time.monotonic_ns()


@instruction
def realtime_ns():
    """Nanoseconds since 1970, as ``time.time_ns``; clocks of machines agree only roughly."""
    return time.time_ns()


@instruction
def futex(address, operation, value, timespec):
    """The system call futex(2)."""
    number, *rest = (ctypes.c_int64(a) for a in (SYS_FUTEX, address, operation, value, timespec))
    return ctypes.CDLL(None).syscall(number, *rest)


@instruction
def fcntl(fd, command, pointer):
    """The function fcntl of C, with a pointer as its third argument."""
    return ctypes.CDLL(None).fcntl(int(fd), int(command), ctypes.c_int64(pointer))


@routine
def _errno():
    return np.int64(_load_int(_errno_location(), 0))


if NOTHING_IS_COMPILED:  # calls of the interpreter overwrite C's errno, so ctypes keeps a copy
    _errno = ctypes.get_errno


@routine
def zeroed_words(count):
    """Return the address of new zeros, which :func:`release_memory` frees; 0: no memory is left."""
    return _allocate(count, WORD_BYTES)


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

    The sleep ends at a wake-up, a signal or the timeout, or at once if the value differs; in any
    case the caller looks at the word again. The low 32 bits are at ``address`` itself, because both
    supported kinds of CPUs are little-endian.
    """
    _write_timespec(scratch, timeout_ns)
    futex(address, FUTEX_WAIT, expected & 0xFFFFFFFF, scratch)


@routine
def futex_wake_all(address):
    """Wake all threads and processes that sleep on ``address``."""
    futex(address, FUTEX_WAKE, WAKE_ALL, 0)


@routine
def _result_or_errno(result):
    """Return the result of a C function; if it is -1, return minus errno."""
    if result >= 0:
        return result
    return -_errno()


@routine
def receive(fd, address, count):
    """Receive up to ``count`` bytes; return how many, 0 at the end of the stream, or -errno."""
    return _result_or_errno(_recv(fd, address, count, 0))


@routine
def receive_message(fd, message):
    """Receive to the addresses of a ``struct msghdr``; the result is as of :func:`receive`."""
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
    """Copy memory of another process, described by ``count`` iovecs ``there``, to those ``here``.

    Returns how many bytes were copied, or -1; see process_vm_readv(2).
    """
    return _read_process(pid, here, count, there, count, 0)


@routine
def write_process(pid, here, there, count):
    """Copy memory described by ``count`` iovecs ``here``, in their order, to another process.

    Returns how many bytes were copied, or -1; see process_vm_writev(2).
    """
    return _write_process(pid, here, count, there, count, 0)


@routine
def can_raise():
    """Tell whether Python knows this thread; in other threads (a prange) numba drops errors."""
    return NOTHING_IS_COMPILED or _thread_state() != 0


@routine
def gil_held():
    """Tell whether this thread holds the GIL.

    ``PyGILState_Check`` does not serve: in a process that has had a second interpreter it says yes
    for every thread. The current state is, up to Python 3.11, the state of the thread that holds
    the GIL; in later versions it is the state of this thread if this thread holds the GIL, or 0.
    """
    thread = _thread_state()
    return thread != 0 and thread == _current_state()


@routine
def release_gil():
    """Give the GIL away if this thread holds it; return the thread state for :func:`regain_gil`."""
    return save_thread() if gil_held() else 0


@routine
def regain_gil(thread):
    """Undo :func:`release_gil`."""
    if thread != 0:
        restore_thread(thread)


@routine
def lock_is_held(fd, byte, scratch):
    """Tell whether another process holds the record lock on one byte of a file.

    The operating system drops the lock when the holder dies, also if the holder is in another PID
    namespace, and also if the holder is still a zombie, which ``kill(pid, 0)`` takes for alive. If
    fcntl fails, the lock counts as held.
    """
    for word in range(SCRATCH_WORDS):
        poke(scratch + word * WORD_BYTES, 0)
    poke(scratch + FLOCK_TYPE_WORD * WORD_BYTES, F_WRLCK << FLOCK_TYPE_SHIFT)
    poke(scratch + FLOCK_START_WORD * WORD_BYTES, byte)
    poke(scratch + FLOCK_LENGTH_WORD * WORD_BYTES, 1)
    if fcntl(fd, F_GETLK, scratch) != 0:
        return True
    found = peek(scratch + FLOCK_TYPE_WORD * WORD_BYTES) >> FLOCK_TYPE_SHIFT
    return (found & 0xFFFF) != F_UNLCK
