"""An array shared by the ranks of a node: create, populate, fence, read, close."""

from __future__ import annotations

import abc
import math
import numbers
from typing import Any, ClassVar, NoReturn, Protocol, SupportsIndex

import numpy as np
from cobre_kernels.collective.regions import REGION_STATE
from cobre_kernels.machine.access import store_word_kernel
from numpy.typing import NDArray

from cobre_comm.arguments.arrays import REGION_IS_NO_ARRAY
from cobre_comm.arguments.mistakes import (
    DTYPE,
    OBJECTS,
    REGION,
    REGION_IS_CLOSED,
    explained,
    outside_region,
)
from cobre_comm.arguments.numbers import as_integer, describe
from cobre_comm.contract.closing import Closing
from cobre_comm.contract.numba_types import LateType
from cobre_comm.errors import AllocationFailed, InvalidCommunicator
from cobre_comm.reports.tracebacks import methods_tell_callers

Shape = SupportsIndex | tuple[SupportsIndex, ...]
Lengths = tuple[int, ...]
LARGEST_BYTES = 2**62
MOST_AXES = 64  # the limit of NumPy 2
LEADER, OWNER, INTERLEAVE = PLACEMENTS = ("leader", "owner", "interleave")


class RegionOwner(Protocol):
    """What a region uses of its communicator."""

    @property
    def is_leader(self) -> bool:
        """Whether this rank populates the whole region."""

    def _check_usable(self) -> None:
        """Raise ``InvalidCommunicator`` if no collective may begin any more."""

    def _fence_region(self, identity: int) -> None:
        """Wait for the ranks of the node at a fence, which makes all writes before it visible."""


@methods_tell_callers(quick=["as_slice"])
class SharedRegion(Closing):
    """One array shared by the ranks of a node.

    The leader populates the whole array (:meth:`as_mut_slice`), or each rank a part of it
    (:meth:`part`). Then all ranks call :meth:`fence`, and read the array (:meth:`as_slice`).
    ``count``, ``nbytes``, ``shape``, ``as_slice``, ``part`` and ``fence`` also work in ``@njit``
    code. Views stay valid as long as they are referenced, even after :meth:`close`.

    Attributes
    ----------
    shape : tuple of int
        Length along each axis. If the region was made by its number of elements, it has one axis.
    count : int
        Number of elements.
    dtype : numpy.dtype
        Type of an element.
    nbytes : int
        Size of all elements in bytes.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> with comm.create_shared_region(4, np.int64) as region:
    ...     region.part(2, 4)[:] = comm.rank + 1
    ...     region.fence()
    ...     region.as_slice()
    array([0, 0, 1, 1])
    >>> region.count, region.nbytes
    (4, 32)

    A table, whose rows a rank writes:

    >>> with comm.create_shared_region((2, 3)) as table:
    ...     table.part(1, 2)[:] = 5
    ...     table.fence()
    ...     table.as_slice()
    array([[0., 0., 0.],
           [5., 5., 5.]])
    """

    _numba_type_: Any = LateType("region")

    _made_by = "comm.create_shared_region(shape)"
    _holder = "region"
    _is_shared: ClassVar[bool]  # whether a fence waits for the other ranks of the node

    def __init__(self, comm: RegionOwner, memory: NDArray[Any], identity: int) -> None:
        readable = memory.view()
        readable.flags.writeable = False
        self._comm = comm
        self._memory: NDArray[Any] | None = memory
        self._readable: NDArray[Any] | None = readable
        self._identity = identity
        self._state = REGION_STATE.array()
        self._address: int = self._state.ctypes.data  # where compiled code finds the region
        REGION_STATE.of(self._state).identity = identity
        self.shape = memory.shape
        self.count = memory.size
        self.dtype = memory.dtype
        self.nbytes = memory.nbytes

    def _open_memory(self) -> NDArray[Any]:
        if self._memory is None:
            raise InvalidCommunicator(REGION_IS_CLOSED)
        return self._memory

    def as_slice(self) -> NDArray[Any]:
        """Return a read-only view of the whole region, without a copy.

        Returns
        -------
        ndarray
            Of the region's shape and dtype.

        Raises
        ------
        InvalidCommunicator
            If this rank has closed the region.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().create_shared_region(2).as_slice()
        array([0., 0.])
        """
        if self._readable is None:
            raise InvalidCommunicator(REGION_IS_CLOSED)
        return self._readable

    def as_mut_slice(self) -> NDArray[Any]:
        """Return a writable view of the whole region on the leader, an empty one on followers.

        The empty view is read-only, so that a follower which assigns to it gets a ``ValueError``.
        A follower writes to a :meth:`part`.

        Returns
        -------
        ndarray
            Of the region's shape and dtype. On followers the first axis has length 0.

        Raises
        ------
        InvalidCommunicator
            If this rank has closed the region.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> region = LocalBackend().create_shared_region(2)
        >>> region.as_mut_slice()[:] = [3, 4]
        >>> region.fence()
        >>> region.as_slice()
        array([3., 4.])
        """
        memory = self._open_memory()
        assert self._readable is not None
        return memory if self._comm.is_leader else self._readable[:0]

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return a writable view of a part along the first axis, on any rank.

        By parts, ranks populate a region together: each rank writes its own part, then all ranks
        call :meth:`fence`.

        Parameters
        ----------
        start, stop : int
            First element, or row, and the one after the last;
            ``0 <= start <= stop <= shape[0]``.

        Returns
        -------
        ndarray, shape (stop - start, ...)
            Of the region's dtype.

        Raises
        ------
        ValueError
            Unless ``0 <= start <= stop <= shape[0]``.
        InvalidCommunicator
            If this rank has closed the region.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> region = comm.create_shared_region(2 * comm.size)
        >>> region.part(2 * comm.rank, 2 * comm.rank + 2)[:] = comm.rank
        >>> region.fence()
        """
        memory = self._open_memory()
        if not 0 <= start <= stop <= self.shape[0]:
            raise outside_region(start, stop, self.shape[0])
        return memory[start:stop]

    @abc.abstractmethod
    def fence(self) -> None:
        """Make writes before the fence visible to all ranks of the node after it; collective.

        All ranks of the node call ``fence`` after they write and before they read. They call it
        again before they write to elements that other ranks may still be reading.

        Raises
        ------
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If this rank has closed the region, or if the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> region = LocalBackend().create_shared_region(1)
        >>> region.as_mut_slice()[:] = 1
        >>> region.fence()
        >>> region.as_slice()
        array([1.])
        """

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be used as an array, because Python or NumPy would write to a copy."""
        raise explained(TypeError(REGION_IS_NO_ARRAY), REGION)

    __getitem__ = __setitem__ = __iter__ = __len__ = __contains__ = __array__ = _refuse

    def __bool__(self) -> bool:
        return True  # otherwise Python would ask for the length, which is refused

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a shared region cannot be pickled: send a copy of its elements, "
            "region.as_slice().copy(), or let each rank read the region"
        )

    def close(self) -> None:
        """Release the region on this rank; idempotent. Views of it stay valid.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> region = LocalBackend().create_shared_region(2)
        >>> view = region.as_slice()
        >>> region.close()
        >>> view
        array([0., 0.])
        """
        self._memory = self._readable = None
        self.__dict__.pop("_numba_type_", None)  # so numba asks anew, and gets an error
        # Pairs with the load in regions.is_closed, of a thread in compiled code.
        store_word_kernel.call(REGION_STATE.of(self._state).closed, 1)

    def __repr__(self) -> str:
        closed = ", closed" if self._memory is None else ""
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}{closed})"


@methods_tell_callers()
class HeapRegion(SharedRegion):
    """A region on the heap of one process: each rank has its own copy.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> LocalBackend().create_shared_region(3)
    HeapRegion(shape=(3,), dtype=float64)
    """

    _is_shared = False

    def fence(self) -> None:
        """Raise if the region or its communicator is closed; a heap copy needs no other step."""
        self._open_memory()
        self._comm._check_usable()


@methods_tell_callers()
class ShmRegion(SharedRegion):
    """A region in memory that all ranks of a node have mapped: they share one copy."""

    _is_shared = True

    def fence(self) -> None:
        """Make writes of the node's ranks visible to all of them, by one step of shared memory."""
        self._open_memory()
        self._comm._fence_region(self._identity)


def heap_zeros(shape: Lengths, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros on the heap, or raise ``AllocationFailed``."""
    try:
        return np.zeros(shape, dtype=dtype)
    except (MemoryError, ValueError) as error:
        raise AllocationFailed(math.prod(shape) * dtype.itemsize, str(error)) from error


def region_layout(shape: Any, dtype: Any, placement: Any) -> tuple[Lengths, np.dtype[Any]]:
    """Check the arguments of ``create_shared_region``; return them as lengths and dtype."""
    axes = shape if isinstance(shape, tuple) else (shape,)
    try:
        lengths = tuple(as_integer("create_shared_region", "shape", length) for length in axes)
    except TypeError:
        wanted = "an integer or a tuple of integers"
        raise TypeError(
            f"create_shared_region: shape must be {wanted}, got {describe(shape)}"
        ) from None
    if not lengths or min(lengths) < 0:
        wanted = "one length or more, each at least 0"
        raise ValueError(f"create_shared_region: shape must have {wanted}, got {shape}")
    try:
        element_type = np.dtype(dtype)
    except TypeError as error:
        said = f"create_shared_region: dtype must be a type of elements, got {describe(dtype)}"
        if isinstance(dtype, numbers.Number):
            said += f"; several lengths are one tuple: create_shared_region({(*axes, dtype)})"
        raise explained(TypeError(said), DTYPE) from error
    while element_type.subdtype is not None:  # an element is an array, so its axes come last
        element_type, inner = element_type.subdtype
        lengths += inner
    if len(lengths) > MOST_AXES:
        most = f"NumPy arrays have at most {MOST_AXES} axes"
        raise ValueError(f"create_shared_region: {most}, got {len(lengths)}")
    if element_type.hasobject:
        objects = TypeError(f"dtype {element_type} holds Python objects; use a dtype of fixed size")
        raise explained(objects, OBJECTS)
    if element_type.itemsize == 0:
        raise TypeError(f"dtype {element_type} has elements of no size")
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        wrong = ValueError if isinstance(placement, str) else TypeError
        raise wrong(
            "create_shared_region: placement must be 'leader', 'owner' or 'interleave', got "
            f"{describe(placement)}"
        )
    nbytes = math.prod(lengths) * element_type.itemsize
    if nbytes > LARGEST_BYTES:
        raise AllocationFailed(nbytes, "no machine has so much memory; check shape and dtype")
    return lengths, element_type
