"""Objects of CPython and NumPy: the fields that the fast path reads.

The fast path reads only fields that have the same place in every supported version: the head of an
object, its first slot, and ``PyArrayObject_fields`` and ``PyArray_Descr`` of NumPy 2's ABI.
:func:`layout_is_known` compares these fields with the values that Python and NumPy give. For
everything else the fast path calls functions of CPython's stable ABI (``libc.py``).
"""

import functools

import numpy as np

from cobre_kernels.collective import dtypes
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED, routine
from cobre_kernels.machine.record import Record, memory, pointer, table, word

HEAD_BYTES = 16  # reference count and type
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
LOW_32 = 0xFFFFFFFF
BYTE_ORDERS = (ord("="), ord("|"))
TYPE_NUMBERS = len(dtypes.BY_TYPE_NUMBER)

OBJECT = Record(
    "Object",
    "The Python object of a communicator. CPython keeps it.",
    head=memory(HEAD_BYTES, "reference count and type"),
    words=pointer("CommArray", "first slot: the array with the communicator's record; 0: none"),
)
COMM_ARRAY = Record(
    "CommArray",
    "The array that holds a communicator's record. NumPy keeps it.",
    head=memory(HEAD_BYTES, "reference count and type"),
    comm=pointer("Comm", "the bytes of the array"),
)
DESCR = Record(
    "Descr",
    "A dtype: NumPy's PyArray_Descr. NumPy keeps it.",
    head=memory(24, "reference count, type and scalar type"),
    codes=word("8 bits each: kind, letter, byte order, old flags; above them the type number"),
    flags=word("flags of the dtype"),
    itemsize=word("bytes of an element"),
)
ARRAY = Record(
    "Array",
    "An array: NumPy's PyArrayObject_fields. If an object is no array, only its type is read.",
    references=word("reference count"),
    type=word("address of the object's class"),
    data=word("address of the array's first element"),
    axes=word("number of axes, in the low 32 bits"),
    dimensions=table("length of each axis"),
    strides=table("bytes from one element to the next along each axis"),
    base=word("the object that owns the array's bytes"),
    descr=pointer("Descr", "the array's dtype"),
    flags=word("contiguous, aligned, writeable, ...; in the low 32 bits"),
)
PYTHON = Record(
    "Python",
    "Python objects of this process that the fast path needs; they live as long as the process.",
    none=word("None"),
    array_type=word("numpy.ndarray"),
    int_type=word("int"),
    op_type=word("ReduceOp"),
    slow_path=word("the Python function for calls that the fast path does not serve"),
    slow_kernel=word("address of the kernel that calls this function"),
    dtypes=table("codes of dtypes by NumPy's type number"),
    broadcast_names=table("names of the parameters of broadcast, in their order"),
    allreduce_names=table("names of the parameters of allreduce, in their order"),
    allgatherv_names=table("names of the parameters of allgatherv, in their order"),
)


@routine
def plain_dtype(python, array, needed_flags):
    """Return the code of an array's dtype; -1 if the object is no array, or lacks a needed flag.

    The result is also -1 if the dtype has another byte order than this machine, or has no code.
    """
    if array.type != python.array_type or array.flags & needed_flags != needed_flags:
        return -1
    codes = array.descr.codes
    order, number = codes >> 16 & 0xFF, codes >> 32 & LOW_32
    if number >= TYPE_NUMBERS or (order != BYTE_ORDERS[0] and order != BYTE_ORDERS[1]):
        return -1
    return python.dtypes[number]


@routine
def count_of(array):
    """Return an array's number of elements."""
    count = 1
    for axis in range(array.axes & LOW_32):
        count *= array.dimensions[axis]
    return count


class _Slotted:
    __slots__ = ("first",)


@functools.cache
def layout_is_known():
    """Tell whether this Python and this NumPy place all fields where this file reads them."""
    if NOTHING_IS_COMPILED or np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return False
    for dtype in ("i1", "f8", "c16", "f4"):
        slotted = _Slotted()
        slotted.first = array = np.zeros((3, 5), dtype=dtype)[1:]
        seen = ARRAY.at(OBJECT.at(id(slotted)).words.address)
        is_as_read = (  # in this order, so that each address is checked before it is followed
            seen.address == id(array)
            and (seen.type, seen.data) == (id(np.ndarray), array.ctypes.data)
            and (seen.axes & LOW_32, seen.descr.address) == (2, id(array.dtype))
            and (seen.dimensions[0], seen.dimensions[1]) == array.shape
            and seen.flags & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == 0x501
            and seen.descr.codes >> 32 == array.dtype.num
            and seen.descr.codes >> 16 & 0xFF in BYTE_ORDERS
            and seen.descr.itemsize == array.dtype.itemsize
        )
        if not is_as_read:
            return False
    return True
