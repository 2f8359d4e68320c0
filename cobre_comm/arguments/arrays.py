"""Which arguments are arrays whose memory a collective may move: one decision for all collectives.

In ``@njit`` code numba decides before this package sees an argument: numba refuses a masked array,
and treats any other subclass like an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.arguments.mistakes import LIST, REGION, SUBCLASS, explained
from cobre_comm.arguments.numbers import describe

# In arrays of these classes an element means what it means in an ndarray. An array of another class
# may have a mask, a unit or labels, which a collective would lose.
PLAIN = (np.ndarray, np.memmap, np.recarray, np.matrix)

OF_REGION = "region.as_slice() reads it, and region.part(start, stop) writes to a part of it"
REGION_IS_NO_ARRAY = f"a shared region is no array: {OF_REGION}"
OF_MEMORY = "numpy.asarray makes one of its memory"

# What to call for Python objects: by collective, a function of cobre_comm.objects.
OBJECT_FUNCTIONS = {
    "broadcast": "broadcast",
    "allgatherv": "allgather",
    "allgather": "allgather",
    "gatherv": "gather",
}


def plain_array(operation: str, name: str, value: object) -> NDArray[Any]:
    """Return an argument that is exactly a plain array, or raise TypeError with what to pass."""
    if type(value) in PLAIN:
        return value  # type: ignore[return-value]  # mypy does not follow the table
    if not isinstance(value, np.ndarray):
        said = f"must be a NumPy array, got {described(value)}; {_remedy(operation, value)}"
        word = REGION if is_region(value) else LIST
        raise explained(TypeError(f"{operation}: {name} {said}"), word)
    if isinstance(value, np.ma.MaskedArray):
        why, remedy = "its mask would be lost", f"{name}.filled(value) or {name}.compressed()"
    else:
        why, remedy = "what its class adds would be lost", f"numpy.asarray({name})"
    said = f"must be a plain NumPy array, got {describe(value)}; {why}, so pass {remedy}"
    raise explained(TypeError(f"{operation}: {name} {said}"), SUBCLASS)


def as_numbers(operation: str, name: str, value: object) -> NDArray[Any]:
    """Return an argument, maybe a sequence of numbers, as a plain array, or raise TypeError."""
    return plain_array(operation, name, value if is_region(value) else np.asanyarray(value))


def is_region(value: object) -> bool:
    """Tell whether a value is a shared region, of this package or of another distribution."""
    return hasattr(type(value), "as_slice")


def described(value: object) -> str:
    """Return any argument in a few words; for a shared region the words say that it is one."""
    return f"a shared region, {value!r}" if is_region(value) else describe(value)


def _remedy(operation: str, value: object) -> str:
    """Return what to pass in place of a value that is no array."""
    if is_region(value):
        return OF_REGION
    return OF_MEMORY if _has_memory(value) else array_remedy(operation)


def _has_memory(value: Any) -> bool:
    """Tell whether a value has memory of which NumPy can make an array; a scalar has none."""
    if isinstance(value, np.generic):
        return False
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return True
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def array_remedy(operation: str) -> str:
    """Return what to pass to a collective in place of a value without the memory of an array."""
    if operation in OBJECT_FUNCTIONS:
        function = f"cobre_comm.objects.{OBJECT_FUNCTIONS[operation]}"
        return f"numpy.array makes one of numbers, and {function} sends other objects"
    if operation == "allreduce":
        return "numpy.array makes one, and comm.sum, comm.min and comm.max reduce one number"
    return "numpy.array makes one"
