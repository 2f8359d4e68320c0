"""The fast path from Python to an entry: one compiled function per collective.

It gets the objects themselves and reads the few fields it needs of a NumPy array
(``PyArrayObject_fields`` and ``PyArray_Descr`` of NumPy 2's ABI). What is not a plain array of a
plain dtype it leaves, with UNUSUAL_ARGUMENTS, to the slow path in ``cobre_comm/slow_path.py``.
One compilation serves every dtype and every number of dimensions.

Array layout, 64-bit: data at 16, nd (32 bits) at 24, dimensions at 32, descr at 56, flags (32
bits) at 64. Descriptor: kind, type, byteorder, flags (8 bits each) at 24, type number (32 bits) at
28, item size at 40. :func:`layout_is_known` compares with what NumPy itself says.
"""

import functools

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import NativeValue, models, register_model, unbox

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import BARRIER, Allgatherv, Allreduce, Barrier, Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import UNUSUAL_ARGUMENTS
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.kernel import compile_cached, run
from cobre_kernels.machine.record import peek_now
from cobre_kernels.machine.record_types import RecordType
from cobre_kernels.machine.routine import routine

COMM_TYPE = RecordType(COMM.name)
TYPE, DATA, ND, DIMENSIONS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
DESCR_HEAD, DESCR_ITEMSIZE = 24, 40
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
LOW_32 = 0xFFFFFFFF
BYTE_ORDERS = (ord("="), ord("|"))


class ObjectType(types.Type):
    """The numba type of a Python object seen as its address; borrowed for the call."""

    def __init__(self):
        super().__init__(name="CobreObject")


object_type = ObjectType()


@register_model(ObjectType)
class _ObjectModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, cgutils.intp_t)


@unbox(ObjectType)
def _unbox_object(typ, obj, c):
    return NativeValue(c.builder.ptrtoint(obj, cgutils.intp_t))


if not config.DISABLE_JIT:
    from numba.extending import intrinsic

    @intrinsic
    def _address(typingctx, obj):
        return types.int64(object_type), lambda context, builder, signature, args: args[0]


@routine
def _is_plain(comm, array, needed_flags):
    """Whether it is exactly an ndarray with these flags and a native numeric dtype."""
    array_type = comm.array_type
    if array_type == 0 or peek(array + TYPE) != array_type:
        return False
    if peek(array + FLAGS) & needed_flags != needed_flags:
        return False
    order = peek(peek(array + DESCR) + DESCR_HEAD) >> 16 & 0xFF
    return (order == BYTE_ORDERS[0] or order == BYTE_ORDERS[1]) and _code(array) > 0


@routine
def _code(array):
    number = peek(peek(array + DESCR) + DESCR_HEAD) >> 32 & LOW_32
    return dtypes.BY_TYPE_NUMBER[number] if number < len(dtypes.BY_TYPE_NUMBER) else -1


@routine
def _itemsize(array):
    return peek(peek(array + DESCR) + DESCR_ITEMSIZE)


@routine
def _count(array):
    dimensions = peek(array + DIMENSIONS)
    count = 1
    for axis in range(peek(array + ND) & LOW_32):
        count *= peek(dimensions + 8 * axis)
    return count


@routine
def _is_table(comm, array):
    is_vector = _is_plain(comm, array, C_CONTIGUOUS | ALIGNED) and peek(array + ND) & LOW_32 == 1
    return is_vector and _code(array) == dtypes.INT64


def _barrier(comm):
    return run(comm.barrier, comm, Barrier(BARRIER, 0))


def _broadcast(comm, buffer, root):
    buffer = _address(buffer)
    needed = C_CONTIGUOUS if root == comm.rank else C_CONTIGUOUS | WRITEABLE
    if not _is_plain(comm, buffer, needed):
        return UNUSUAL_ARGUMENTS
    size_bytes = _count(buffer) * _itemsize(buffer)
    call = Broadcast(peek(buffer + DATA), size_bytes, _code(buffer), root)
    return run(comm.broadcast, comm, call)


def _allreduce(comm, send, recv, op):
    send, recv = _address(send), _address(recv)
    if not _is_plain(comm, send, C_CONTIGUOUS | ALIGNED):
        return UNUSUAL_ARGUMENTS
    if not _is_plain(comm, recv, C_CONTIGUOUS | ALIGNED | WRITEABLE):
        return UNUSUAL_ARGUMENTS
    code = _code(send)
    if code != _code(recv) or not dtypes.INT8 <= code <= dtypes.COMPLEX128:
        return UNUSUAL_ARGUMENTS
    source, target = peek(send + DATA), peek(recv + DATA)
    call = Allreduce(source, _count(send), target, _count(recv), _itemsize(send), code, op)
    return run(comm.allreduce, comm, call)


def _allgatherv(comm, send, recv, counts, displs):
    send, recv = _address(send), _address(recv)
    counts, displs = _address(counts), _address(displs)
    if not _is_plain(comm, send, C_CONTIGUOUS):
        return UNUSUAL_ARGUMENTS
    if not _is_plain(comm, recv, C_CONTIGUOUS | WRITEABLE) or _code(send) != _code(recv):
        return UNUSUAL_ARGUMENTS
    if not _is_table(comm, counts) or not _is_table(comm, displs):
        return UNUSUAL_ARGUMENTS
    call = Allgatherv(
        peek(send + DATA), _count(send), peek(recv + DATA), _count(recv), _itemsize(send),
        _code(send), peek(counts + DATA), peek(displs + DATA), _count(counts), _count(displs),
    )  # fmt: skip
    return run(comm.allgatherv, comm, call)


def layout_is_known():
    """Whether arrays and descriptors look here as this file reads them."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return False
    for dtype in ("i1", "f8", "c16", "f4"):
        array = np.zeros((3, 5), dtype=dtype)[1:]
        at = id(array)
        seen = (
            peek_now(at + TYPE),
            peek_now(at + DATA),
            peek_now(at + ND) & LOW_32,
            peek_now(at + DESCR),
            peek_now(at + FLAGS) & (C_CONTIGUOUS | ALIGNED | WRITEABLE),
        )
        expected = (id(np.ndarray), array.ctypes.data, 2, id(array.dtype), 0x501)
        if seen != expected:
            return False
        dimensions, descr = peek_now(at + DIMENSIONS), id(array.dtype)
        shape = (peek_now(dimensions), peek_now(dimensions + 8))
        head = peek_now(descr + DESCR_HEAD)
        if shape != array.shape or head >> 32 != array.dtype.num:
            return False
        order_is_native = head >> 16 & 0xFF in BYTE_ORDERS
        if not order_is_native or peek_now(descr + DESCR_ITEMSIZE) != array.dtype.itemsize:
            return False
    return True


@functools.cache
def array_type_address():
    """Return what goes into the record's ``array_type``; 0 turns every call to the slow path."""
    return 0 if config.DISABLE_JIT or not layout_is_known() else id(np.ndarray)


def _unusual(*arguments):
    return UNUSUAL_ARGUMENTS


# By name: the function, and the types of its arguments after the record.
FAST_PATHS = {
    "barrier": (_barrier, ()),
    "broadcast": (_broadcast, (object_type, types.int64)),
    "allreduce": (_allreduce, (object_type, object_type, types.int64)),
    "allgatherv": (_allgatherv, (object_type,) * 4),
}


@functools.cache
def fast_path(name):
    """Return the compiled function of that name in :data:`FAST_PATHS`."""
    function, arguments = FAST_PATHS[name]
    if config.DISABLE_JIT:
        return _unusual
    return compile_cached(types.int64(COMM_TYPE, *arguments), function).entry_point
