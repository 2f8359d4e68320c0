"""The arguments of mpi4py's calls: buffer specifications, types of elements, operations."""

from __future__ import annotations

import contextlib
import operator
import pickle
from collections.abc import Callable, Iterator
from operator import index
from typing import Any, NoReturn

import numpy as np
from cobre_kernels.machine.float_mode import leave_float_mode_kernel, return_to_float_mode_kernel
from numpy.typing import NDArray

from cobre_comm.arguments.arrays import plain_array
from cobre_comm.arguments.numbers import describe
from cobre_comm.mpi4py.missing import NotHere
from cobre_comm.reduce_op import ReduceOp

Array = NDArray[Any]


def _lacks(owner: str, name: str) -> NoReturn:
    raise AttributeError(name) if name[0] == "_" else NotHere(f"{owner}.{name}")


class _Lacking(type):
    def __getattr__(cls, name: str) -> NoReturn:
        _lacks(cls.__name__, name)


class Partial(metaclass=_Lacking):
    """A class with some of the names of mpi4py's class; any other name raises."""

    def __getattr__(self, name: str) -> NoReturn:
        _lacks(type(self).__name__, name)


class Datatype(Partial):
    """The type of the elements of a buffer."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = f"MPI_{name}", np.dtype(dtype)
        self.size = self.extent = self.dtype.itemsize

    def Get_size(self) -> int:
        return self.size


# If several types have the same elements, mpi4py uses the first of them for an array.
DTYPES = """
SIGNED_CHAR=b UNSIGNED_CHAR=B SHORT=h UNSIGNED_SHORT=H INT=i UNSIGNED=I LONG=l UNSIGNED_LONG=L
LONG_LONG=q UNSIGNED_LONG_LONG=Q FLOAT=f DOUBLE=d LONG_DOUBLE=g C_BOOL=? C_FLOAT_COMPLEX=F
C_DOUBLE_COMPLEX=D C_LONG_DOUBLE_COMPLEX=G INT8_T=i1 INT16_T=i2 INT32_T=i4 INT64_T=i8 UINT8_T=u1
UINT16_T=u2 UINT32_T=u4 UINT64_T=u8 BYTE=B CHAR=b UNSIGNED_INT=I BOOL=? AINT=i8 COMPLEX=F
DOUBLE_COMPLEX=D"""
_WORDS = [word.split("=") for word in DTYPES.split()]
DATATYPES = {name: Datatype(name, dtype) for name, dtype in _WORDS}
TYPEDICT = {dtype: DATATYPES[name] for name, dtype in reversed(_WORDS)}
TYPEDICT = {kind.dtype.str[1:]: kind for kind in TYPEDICT.values()} | TYPEDICT


class Op(Partial):
    """A reduction: a function of two Python objects, and a function of two arrays, or None."""

    def __init__(self, name: str, of_objects: Any, of_arrays: Any, *, own: bool = False) -> None:
        self.name, self._of_objects, self._of_arrays = f"MPI_{name}", of_objects, of_arrays
        self._own = own  # whether the program made the function, which then gets a type too
        self._ours = ReduceOp.__members__.get(name)

    @classmethod
    def Create(cls, function: Callable[[Any, Any, Any], Any], commute: bool = False) -> Op:
        def of_arrays(x: Array, y: Array, kind: Datatype) -> Array:
            function(x.data.cast("B"), (inout := y.copy()).data.cast("B"), kind)
            return inout

        return cls("OP_USER", lambda x, y: function(x, y, None), of_arrays, own=True)

    def Free(self) -> None: ...

    def __call__(self, x: Any, y: Any) -> Any:
        return self._of_objects(x, y)

    def ours(self, dtype: np.dtype[Any]) -> ReduceOp | None:
        """Return the operation of our ``allreduce`` that reduces elements of a dtype, or None."""
        bits = self._ours in (ReduceOp.BAND, ReduceOp.BOR)
        known = "?bBhHiIlLqQ" + "fd" * (not bits) + "FD" * (self._ours == ReduceOp.SUM)
        return self._ours if dtype.char in known else None

    def fold(self, arrays: Array, kind: Datatype) -> Any:
        if self._of_arrays is None:
            raise NotHere(f"{self.name} of arrays", "is comm.allreduce((value, place), op) here")
        with usual_float_mode():
            told = (kind,) if self._own else ()
            folded = arrays[0].copy()
            for array in arrays[1:]:
                folded = self._of_arrays(folded, array, *told)
            return folded.astype(arrays.dtype)


OPERATIONS: dict[str, tuple[Any, Any]] = {
    "SUM": (operator.add, np.add),
    "PROD": (operator.mul, np.multiply),
    "MIN": (lambda x, y: y if y < x else x, np.minimum),
    "MAX": (lambda x, y: y if y > x else x, np.maximum),
    "LAND": (lambda x, y: bool(x) & bool(y), np.logical_and),
    "LOR": (lambda x, y: bool(x) | bool(y), np.logical_or),
    "LXOR": (lambda x, y: bool(x) ^ bool(y), np.logical_xor),
    "BAND": (operator.and_, np.bitwise_and),
    "BOR": (operator.or_, np.bitwise_or),
    "BXOR": (operator.xor, np.bitwise_xor),
    "REPLACE": (lambda x, y: y, lambda x, y: y),
    "NO_OP": (lambda x, y: x, lambda x, y: x),
    "MINLOC": (lambda x, y: min(tuple(x), tuple(y)), None),  # of equal values, the lower place
    "MAXLOC": (lambda x, y: tuple(x if (x[0], y[1]) >= (y[0], x[1]) else y), None),
}
OPS = {name: Op(name, *functions) for name, functions in OPERATIONS.items()}


class Pickle:
    """How objects become bytes: ``MPI.pickle``, to which programs may give their own functions."""

    def __init__(
        self, dumps: Any = None, loads: Any = None, protocol: Any = None, threshold: Any = None
    ) -> None:
        self._own = (dumps or pickle.dumps, loads or pickle.loads) != (pickle.dumps, pickle.loads)
        self._dumps, self.loads = dumps or pickle.dumps, loads or pickle.loads
        self.PROTOCOL = protocol

    def dumps(self, obj: Any) -> Any:
        return self._dumps(obj, *([] if self.PROTOCOL is None else [self.PROTOCOL]))

    def sent(self, obj: Any) -> Any:
        """Return what to send in place of an object; on arrival it becomes the object again."""
        return _ByOwnFunctions(obj) if self._own else obj


class _ByOwnFunctions:
    def __init__(self, obj: Any) -> None:
        self._obj = obj

    def __reduce__(self) -> Any:
        return _loaded, (PICKLE.dumps(self._obj),)


def _loaded(data: Any) -> Any:
    return PICKLE.loads(data)


PICKLE = Pickle()


@contextlib.contextmanager
def usual_float_mode() -> Iterator[None]:
    """Compute in the float mode of a new thread, because a library may have changed the mode."""
    kept = np.empty(1, dtype=np.int64)
    leave_float_mode_kernel.call(kept.ctypes.data)
    try:
        yield
    finally:
        return_to_float_mode_kernel.call(kept.ctypes.data)


def whole(number: Any) -> int:
    """Return a number as mpi4py reads an int of C: a bool is a number, and a float is truncated.

    Counts of elements are read by ``index``, because they must be integers, in mpi4py too.
    """
    if isinstance(number, (str, bytes)) or np.ndim(number):
        raise TypeError(f"an integer is required, got {describe(number)}")
    return int(number)


def elements(spec: Any) -> Array:
    """Return the elements of ``buffer``, or of ``[buffer, count, displacement, type]``.

    Everything but the buffer may be missing. Count and displacement may be given as a pair.
    """
    if isinstance(spec, np.ndarray):
        return _memory(spec)
    array, count, displ = _parts(spec, (tuple, list))
    begin = index(displ or 0)
    end = array.size if count is None else begin + index(count)
    if not 0 <= begin <= end <= array.size:
        raise ValueError(f"elements {begin} to {end} are not inside a buffer of {array.size}")
    return array[begin:end]


def kind_of(spec: Any) -> Datatype:
    """Return the type of a buffer's elements: the program's choice, or else mpi4py's."""
    for word in spec if isinstance(spec, (list, tuple)) else ():
        if isinstance(word, Datatype):
            return word
        if isinstance(word, str) and word in TYPEDICT:
            return TYPEDICT[word]
    return TYPEDICT.get(elements(spec).dtype.char, DATATYPES["BYTE"])


def blocks(spec: Any, size: int) -> tuple[Array, list[int], list[int]]:
    """Return the elements of a buffer, and count and displacement of each rank's block."""
    array, counts, displs = _parts(spec, tuple)
    if counts is None:
        counts = [array.size // size + (array.size % size > rank) for rank in range(size)]
    counts = [index(n) for n in (counts if np.ndim(counts) else [counts] * size)]
    if displs is None:
        displs = [sum(counts[:rank]) for rank in range(size)]
    elif not np.ndim(displs):
        displs = [displs * rank for rank in range(size)]
    displs = [index(n) for n in displs]
    inside = (0 <= d <= d + n <= array.size for n, d in zip(counts, displs, strict=False))
    if not (len(counts) == len(displs) == size and all(inside)):
        places = f"counts {counts} and displacements {displs} are not those of {size} blocks"
        raise ValueError(f"{places} inside a buffer of {array.size}")
    return array, counts, displs


def check_fills(recv: Array, values: Array) -> None:
    if (recv.size, recv.dtype) != (values.size, values.dtype):
        raise ValueError(f"{values.size} {values.dtype} do not fill {recv.size} {recv.dtype}")


def fill(recv: Array, values: Array) -> None:
    """Copy values into a buffer that they must fill: NumPy alone might repeat or convert them."""
    check_fills(recv, values)
    recv.reshape(-1)[:] = values.reshape(-1)


def _parts(spec: Any, pair: Any) -> tuple[Array, Any, Any]:
    """Return array, count and displacement, or None for a missing count or displacement.

    ``pair`` has the types of a sequence that may hold count and displacement together.
    """
    data, *rest = spec if isinstance(spec, (list, tuple)) and spec else (spec,)
    kind = rest.pop() if len(rest) > 1 or isinstance([*rest, 0][0], (Datatype, str)) else None
    if len(rest) == 1 and isinstance(rest[0], pair):
        rest = list(rest[0])
    count, displ = [*rest, None, None][:2]
    array = _memory(data).reshape(-1)
    dtype = array.dtype if kind is None else np.dtype(getattr(kind, "dtype", kind))
    return array if array.dtype == dtype else array.view(np.uint8).view(dtype), count, displ


def _memory(data: Any) -> Array:
    """Return a buffer as an array over the same memory, with contiguous elements."""
    if isinstance(data, np.ndarray):
        array = plain_array("mpi4py", "buffer", data).view(np.ndarray)
    else:
        try:
            array = np.asarray(memoryview(bytearray() if data is None else data))
        except TypeError:
            said = "a NumPy array, or another object with Python's buffer protocol"
            remedy = "pass an array of its memory, such as tensor.numpy(), or a copy of a GPU's"
            raise TypeError(f"a buffer is {said}, got {describe(data)}; {remedy}") from None
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the elements of a buffer must lie one after another: pass a copy")
    return array if array.flags.c_contiguous else array.T
