"""The contract of a communicator; a backend's class documents only what is special to it."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cobre_comm.arguments.numbers import as_integer
from cobre_comm.arguments.other_names import SAID, OtherName
from cobre_comm.contract import derived
from cobre_comm.contract.closing import Closing
from cobre_comm.contract.derived import Float, Int
from cobre_comm.contract.phases import Phase, letters_of
from cobre_comm.errors import CollectiveFailed
from cobre_comm.reduce_op import ReduceOp
from cobre_comm.reports import aborting
from cobre_comm.reports.tracebacks import methods_tell_callers

if TYPE_CHECKING:
    from cobre_comm.contract.shared_region import Shape, SharedRegion
    from cobre_comm.contract.topology import Topology
    from cobre_comm.contract.work import Work
    from cobre_comm.journal.stats import Stats

Array = NDArray[Any]
Table = NDArray[np.int64]
Counts = Sequence[int] | NDArray[np.integer[Any]]


class SharedMemoryProvider(abc.ABC):
    """Arrays shared by the ranks of a node.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> with LocalBackend() as comm:
    ...     inflows = comm.create_shared_region(3)
    ...     if comm.is_leader:
    ...         inflows.as_mut_slice()[:] = 5
    ...     inflows.fence()
    ...     inflows.as_slice()
    array([5., 5., 5.])
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def is_leader(self) -> bool:
        """Whether this rank may populate a whole region.

        It is true on the first rank of each node. If every rank has a heap copy instead of a shared
        region, it is true on every rank, because each rank has to populate its own copy.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().is_leader
        True
        """

    @abc.abstractmethod
    def create_shared_region(
        self, shape: Shape, dtype: DTypeLike = np.float64, *, placement: str = "owner"
    ) -> SharedRegion:
        """Create an array of zeros that the ranks of this node share; collective.

        A region is also the best place to receive into. If all ranks of a node pass the same part
        of a region (:meth:`SharedRegion.part`) as the output of a collective, each byte is written
        once for the node instead of once for each rank. On one node, a rank that sends from its own
        block of that output copies nothing.

        Parameters
        ----------
        shape : int or tuple of int
            Number of elements, or the length along each axis; the same on all ranks, each at
            least 0.
        dtype : dtype
            Any fixed-size dtype without Python objects; the same on all ranks.
        placement : str
            On which NUMA nodes the pages are, if a machine has several; the same on all ranks.
            With ``"owner"``, each rank has the pages of its share of the first axis on its own NUMA
            node; the shares are those of :meth:`Communicator.share` among the ranks of a node. With
            ``"leader"``, all pages are on the NUMA node of the leader, for data that the leader
            alone uses. With ``"interleave"``, pages are on all NUMA nodes in turn, for data that
            all ranks read everywhere; ``COBRE_SHM_NUMA_INTERLEAVE=1`` does so for every region.

        Returns
        -------
        SharedRegion
            Its views have the shape ``shape``, or ``(shape,)`` if that is an int. On every rank
            they are zeros at first.

        Raises
        ------
        TypeError, ValueError
            For a ``shape``, ``dtype`` or ``placement`` that cannot be used.
        AllocationFailed
            On all ranks alike, if one of them cannot have the memory; the error says which rank,
            and why. The communicator stays usable. Pages are reserved beforehand, so that no rank
            ends with a bus error later.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().create_shared_region(1000, np.float32)
        HeapRegion(shape=(1000,), dtype=float32)
        """

    @abc.abstractmethod
    def split_local(self) -> Communicator:
        """Make a communicator of the ranks that share memory with this rank; collective.

        Returns
        -------
        Communicator
            The ranks of this node, in the same order; on ``local`` this rank alone.

        Raises
        ------
        AllocationFailed, InitializationFailed
            On all ranks alike, if the new communicator cannot be made.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> node = LocalBackend().split_local()
        >>> node.size
        1
        """


@methods_tell_callers()
class Communicator(Closing, SharedMemoryProvider):
    """A fixed group of ranks and the collectives among them.

    Every rank calls the same collectives in the same order. Arrays are C-contiguous NumPy arrays of
    any shape. Of the subclasses of ndarray, ``memmap``, ``recarray`` and ``matrix`` are accepted.
    Other subclasses are refused, because a mask or a unit would be lost. If a rank can see by
    itself that an argument is wrong, the rank raises before it communicates, and its communicator
    stays usable. If ranks disagree, or a rank is lost, all other ranks learn of the failure as soon
    as it happens. After such an error in a collective the contents of the output buffers are
    unspecified, and the communicator is broken: every later collective on the communicator raises
    :class:`~cobre_comm.InvalidCommunicator`, which names the first cause.

    On a closed communicator every collective raises :class:`~cobre_comm.InvalidCommunicator`, and
    so do ``create_shared_region``, ``split``, ``split_local``, ``share``, ``shares``, ``stats``,
    ``topology``, ``abort`` and the ``fence`` of its regions. ``rank`` and ``size`` stay readable.

    ``rank``, ``size``, ``is_leader``, ``share``, ``shares``, ``enter_phase`` and the collectives
    work inside ``@njit`` code too, on the same object, with the same checks and the same
    exceptions. Pass the communicator as an argument, because numba does not cache a function that
    takes it from a global or a closure. A tuple, ``jitclass``, ``structref`` or ``typed.List`` that
    holds the communicator keeps it alive.

    Notes
    -----
    One thread at a time may use a communicator; a second thread that enters a collective gets
    ``InvalidCommunicator``. A process that is forked after the communicator was made must make a
    communicator of its own.

    In a ``prange`` a collective does not compile. If another function hides the call, the call
    compiles, and is refused when it runs. numba drops errors of the threads of a ``prange``, so the
    refusal breaks the communicator instead: the other ranks learn of that, and the next call
    raises.

    In ``@njit`` code ``except Exception`` catches all errors, and numba compiles no other clause.
    When an exception leaves a compiled function, numba does not give back the references that the
    function held. A communicator among them is no longer closed by garbage collection, but still by
    ``close``, by the end of a ``with`` block, and at exit.

    Examples
    --------
    >>> from numba import njit
    >>> from cobre_comm import LocalBackend
    >>> @njit
    ... def mean(comm, values, total):
    ...     comm.allreduce(values, total)
    ...     return total / comm.size
    >>> with LocalBackend() as comm:
    ...     mean(comm, np.ones(2), np.empty(2))
    array([1., 1.])
    """

    __slots__ = ()
    _made_by = "create_communicator(), which finds the backend"
    _holder = "comm"

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """Number of this rank, ``0 <= rank < size``; constant.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().rank
        0
        """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of ranks; constant.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().size
        1
        """

    @property
    @abc.abstractmethod
    def backend(self) -> str:
        """Name of the backend: ``"local"``, ``"shm"``, ``"tcp"`` or ``"mpi"``. Python only.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().backend
        'local'
        """

    @abc.abstractmethod
    def allgatherv(self, send: Array, recv: Array, counts: Counts, displs: Counts) -> None:
        """Gather blocks of different lengths from all ranks, on all ranks.

        Afterwards ``recv[displs[r]:displs[r] + counts[r]]`` holds the ``send`` of rank r, for every
        r, and elements outside the blocks are untouched. No rank returns before all have
        contributed.

        Parameters
        ----------
        send : ndarray
            This rank's ``counts[rank]`` elements, of any fixed-size dtype without Python objects.
            It may be exactly this rank's own block of ``recv``, and is not copied then. Any other
            overlap of ``send`` and ``recv`` is an error.
        recv : ndarray
            Writable, same dtype as ``send``.
        counts, displs : sequence of int, or int64 array
            Length and displacement of each rank's block, in elements; the same on all ranks. The
            blocks lie inside ``recv`` and do not overlap. A count may be zero.

        Raises
        ------
        TypeError, ValueError
            For arrays or tables that cannot be used.
        InvalidBufferSize
            If ``send``, ``counts`` or ``displs`` has a wrong length, or a block is not inside
            ``recv``.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        Rank 0 gives two elements, which go to the end of ``recv``. With more ranks there is a count
        and a displacement for each:

        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> recv = np.zeros(4)
        >>> comm.allgatherv(np.ones(2), recv, [2], [2])
        >>> recv
        array([0., 0., 1., 1.])
        """

    @abc.abstractmethod
    def gatherv(
        self,
        send: Array,
        recv: Array | None,
        counts: Counts | None,
        displs: Counts | None,
        root: int = 0,
    ) -> None:
        """Gather blocks of different lengths from all ranks, on the root.

        Afterwards ``recv[displs[r]:displs[r] + counts[r]]`` of the root holds the ``send`` of rank
        r, for every r, and elements outside the blocks are untouched. Other ranks may return
        earlier.

        Parameters
        ----------
        send : ndarray
            This rank's elements, of any fixed-size dtype without Python objects; the root expects
            ``counts[rank]`` of them. On the root, ``send`` may be exactly its own block of
            ``recv``.
        recv : ndarray or None
            On the root, writable and of the same dtype as ``send``. Other ranks pass None, or any
            array, which is neither read nor written. Other ranks may also pass None, or anything,
            for ``counts`` and ``displs``.
        counts, displs : sequence of int, int64 array or None
            On the root as for :meth:`allgatherv`.
        root : int
            The rank that gets the blocks, the same on all ranks.

        Raises
        ------
        TypeError, ValueError
            For arrays or tables that cannot be used.
        InvalidRoot
            If ``root`` is not a rank.
        InvalidBufferSize
            On the root, if ``send``, ``counts`` or ``displs`` has a wrong length, or a block is not
            inside ``recv``.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree. All ranks raise it too if one of them
            sends another number of elements than the root's ``counts`` say.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> recv = np.zeros(4)
        >>> comm.gatherv(np.ones(2), recv if comm.rank == 0 else None, [2], [1])
        >>> recv
        array([0., 1., 1., 0.])
        """

    @abc.abstractmethod
    def allreduce(self, send: Array, recv: Array, op: ReduceOp = ReduceOp.SUM) -> None:
        """Reduce element by element over all ranks, on all ranks.

        ``recv[i] = op(send_0[i], ..., send_{R-1}[i])``, folded in rank order. So the result has the
        same bits on all ranks, for every backend, message size and order of arrival.

        Parameters
        ----------
        send, recv : ndarray
            Same dtype (bool, int8..int64, uint8..uint64, float32, float64, complex64 or complex128;
            not every dtype has every ``op``) and the same number of elements, at least one. They
            may be the same array, but not overlap otherwise.
        op : ReduceOp
            The operation that folds two elements into one, the same on all ranks.

        Raises
        ------
        TypeError, ValueError
            For arrays or an ``op`` that cannot be used.
        InvalidBufferSize
            If the lengths differ or are zero.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend, ReduceOp
        >>> comm = LocalBackend()
        >>> costs, lowest = np.array([3.0, 1.0]), np.empty(2)
        >>> comm.allreduce(costs, lowest, ReduceOp.MIN)
        >>> lowest
        array([3., 1.])
        """

    @abc.abstractmethod
    def broadcast(self, buf: Array, root: int = 0) -> None:
        """Give every rank the root's bytes.

        Parameters
        ----------
        buf : ndarray
            Of the same length in bytes on all ranks, and of any fixed-size dtype without Python
            objects. It is read on the root, where it may be read-only, and written on the other
            ranks.
        root : int
            The rank that gives its bytes, the same on all ranks.

        Raises
        ------
        TypeError, ValueError
            For a ``buf`` that cannot be used.
        InvalidRoot
            If ``root`` is not a rank.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> state = np.zeros(3)
        >>> if comm.rank == 0:
        ...     state[:] = 7
        >>> comm.broadcast(state)
        >>> state
        array([7., 7., 7.])
        """

    @abc.abstractmethod
    def barrier(self) -> None:
        """Return when all ranks have entered.

        Raises
        ------
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.barrier()
        """

    @overload
    def sum(self, x: Int) -> int: ...
    @overload
    def sum(self, x: Float) -> float: ...
    def sum(self, x: Int | Float) -> int | float:
        """Return the sum of one number of each rank, on all ranks; collective.

        It is an ``allreduce`` of one element. The numbers are added in rank order, so the sum has
        the same bits on all ranks and on every backend.

        Parameters
        ----------
        x : int or float
            NumPy's numbers too. All ranks give an int, or all give a float; otherwise they
            disagree.

        Returns
        -------
        int or float
            The sum of ints is an int, which wraps at 64 bits. The sum of floats is a float
            (float64).

        Raises
        ------
        TypeError
            If ``x`` is no number, or a bool or complex.
        ValueError
            If an int does not fit 64 bits.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.sum(2), comm.sum(2.5)
        (2, 2.5)
        """
        return derived.reduced(self, "sum", x)

    @overload
    def min(self, x: Int) -> int: ...
    @overload
    def min(self, x: Float) -> float: ...
    def min(self, x: Int | Float) -> int | float:
        """Return the smallest of one number of each rank, on all ranks; collective.

        Parameters
        ----------
        x : int or float
            NumPy's numbers too. All ranks give an int, or all give a float; otherwise they
            disagree.

        Returns
        -------
        int or float
            An int if the ranks give ints, a float (float64) if they give floats. A NaN on any rank
            gives NaN.

        Raises
        ------
        TypeError, ValueError, CollectiveFailed, InvalidCommunicator
            As :meth:`sum`.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().min(2.5)
        2.5
        """
        return derived.reduced(self, "min", x)

    @overload
    def max(self, x: Int) -> int: ...
    @overload
    def max(self, x: Float) -> float: ...
    def max(self, x: Int | Float) -> int | float:
        """Return the largest of one number of each rank, on all ranks; collective.

        Parameters
        ----------
        x : int or float
            NumPy's numbers too. All ranks give an int, or all give a float; otherwise they
            disagree.

        Returns
        -------
        int or float
            An int if the ranks give ints, a float (float64) if they give floats. A NaN on any rank
            gives NaN.

        Raises
        ------
        TypeError, ValueError, CollectiveFailed, InvalidCommunicator
            As :meth:`sum`.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().max(3)
        3
        """
        return derived.reduced(self, "max", x)

    def allgather(self, send: Array, recv: Array) -> None:
        """Gather blocks of one length from all ranks, on all ranks.

        Afterwards ``recv`` holds the ``send`` of ranks 0, 1, ..., size - 1 after one another.

        Parameters
        ----------
        send : ndarray
            The same number of elements on all ranks, of any fixed-size dtype without Python
            objects. It may be exactly this rank's own block of ``recv``.
        recv : ndarray
            Writable, same dtype, ``size * send.size`` elements, of any shape.

        Raises
        ------
        TypeError, ValueError
            For arrays that cannot be used.
        InvalidBufferSize
            If ``recv`` has another length.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> import numpy as np
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> everyone = np.empty((comm.size, 3))
        >>> comm.allgather(np.arange(3.0), everyone)
        >>> everyone
        array([[0., 1., 2.]])
        """
        derived.allgather(self, send, recv)

    def share(self, n: int) -> tuple[int, int]:
        """Return this rank's share of items 0 to n - 1: its first item, and the one after its last.

        Shares are contiguous, in the order of ranks, and as equal as can be: the first ``n % size``
        ranks have one item more. ``share`` is no collective, so one rank may call it alone.

        Parameters
        ----------
        n : int
            Number of items, from 0 to 2**62.

        Returns
        -------
        tuple of (int, int)
            ``start, stop``, for ``range(start, stop)`` or a slice. The two are equal on a rank that
            has no item.

        Raises
        ------
        TypeError, ValueError
            For an ``n`` that cannot be used.
        InvalidCommunicator
            If the communicator cannot be used any more.

        See Also
        --------
        shares : The shares of all ranks, for an ``allgatherv``.
        create_work : For items that take different times.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> scenarios = np.arange(10)
        >>> start, stop = comm.share(scenarios.size)
        >>> comm.sum(scenarios[start:stop].sum())
        45
        """
        self._check_usable()
        return derived.share(self, n)

    def shares(self, n: int, width: int = 1) -> tuple[Table, Table]:
        """Return counts and displacements of the shares of all ranks, as ``allgatherv`` takes them.

        The shares are those of :meth:`share`. Not a collective.

        Parameters
        ----------
        n : int
            Number of items, at least 0.
        width : int
            Elements of an item, at least 0; ``n * width`` is 2**62 at most.

        Returns
        -------
        counts, displs : int64 ndarray, shape (size,)
            The number of elements of each rank's share, and where the share begins; new arrays in
            each call.

        Raises
        ------
        TypeError, ValueError
            For an ``n`` or a ``width`` that cannot be used.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        A table of ten rows, of which each rank computes its share:

        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> start, stop = comm.share(10)
        >>> mine = np.ones((stop - start, 3))
        >>> table = np.empty((10, 3))
        >>> comm.allgatherv(mine, table, *comm.shares(10, width=3))
        >>> comm.shares(10, width=3)
        (array([30]), array([0]))
        """
        self._check_usable()
        return derived.shares(self, n, width)

    def _check_usable(self) -> None:
        """Raise ``InvalidCommunicator`` if no collective may begin any more, as far as is known."""
        self._check_open()

    def _check_open(self) -> None:
        """Raise ``InvalidCommunicator`` for a closed communicator."""
        self.stats()  # a method of every backend, which waits for no rank

    @abc.abstractmethod
    def exact_sum(self, values: Array) -> float:
        """Return the exact sum of every element on every rank, rounded once; collective.

        The result has the same bits for any number of ranks, any order of the values, and any
        split of the values over the ranks. Ties are rounded to even. Before the final rounding
        nothing is rounded, and nothing overflows, so ``1e308 + 1e308 - 1e308`` is ``1e308``.

        Parameters
        ----------
        values : ndarray
            float64 or float32, of any shape, C-contiguous and aligned. Ranks may hold different
            numbers of elements, also none, and either dtype.

        Returns
        -------
        float
            On all ranks the same float64. A sum of zero, or of nothing, is +0.0; a sum beyond the
            largest float64 is an infinity. A NaN on any rank, or infinities of both signs, give
            NaN; infinities of one sign give that infinity.

        Raises
        ------
        TypeError, ValueError
            For ``values`` that cannot be used.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Notes
        -----
        R. M. Neal, "Fast exact summation using small and large superaccumulators",
        arXiv:1505.05571 (2015). ``cobre_kernels/collective/reduction/exact_sum.py`` has the
        algorithm. One rank adds about as fast as a plain loop; the ranks exchange 560 bytes each.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.exact_sum(np.array([1e308, 1e308, 1.0, -1e308, -1e308]))
        1.0
        """

    def stop_requested(self) -> bool:
        """Tell whether a rank has been asked to stop; all ranks get the same answer.

        A signal asks for a stop if ``COBRE_COMM_GRACEFUL=SIGTERM,SIGUSR1`` names the signal, or if
        ``create_communicator(graceful=...)`` does. The request travels with the next collective
        that the rank begins. From the end of that collective on, all ranks get True, for good. A
        ``fence`` carries no request.

        Returns
        -------
        bool
            The same on all ranks between the same two collectives.

        Raises
        ------
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import BackendKind, create_communicator
        >>> with create_communicator(BackendKind.LOCAL) as comm:
        ...     for iteration in range(3):
        ...         comm.barrier()
        ...         if comm.stop_requested():
        ...             break  # and write a checkpoint
        >>> iteration
        2
        """
        return False  # for backends that take no signals

    @overload
    def split(self, color: int, key: int = 0) -> Communicator: ...
    @overload
    def split(self, color: int | None, key: int = 0) -> Communicator | None: ...
    @abc.abstractmethod
    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Make a communicator of the ranks that give the same color; collective. Python only.

        The ranks of the new communicator are ordered by ``key``, and ranks with equal keys by their
        rank in this communicator. The new communicator is independent of this one: either of the
        two may be closed first, the new communicator may be split again, and it has statistics and
        regions of its own. Its ranks find out anew which of them share memory. Its errors name
        ranks by their new numbers.

        Parameters
        ----------
        color : int or None
            Any number of 64 bits, negative ones and NumPy's included, but no bool. A rank that
            passes None takes part in the split, and gets no communicator.
        key : int
            Any number of 64 bits, which orders the ranks of a color.

        Returns
        -------
        Communicator or None
            The communicator of this rank's color; None for color None.

        Raises
        ------
        TypeError, ValueError
            For a color or a key that cannot be used, before anything is sent.
        AllocationFailed
            On all ranks alike, if one of them cannot have the memory; the error says which rank,
            and why. This communicator stays usable.
        InitializationFailed
            On all ranks alike, if the ranks of a color cannot connect (``tcp``, ``mpi``). This
            communicator stays usable.
        CollectiveFailed
            If a rank is lost, late or interrupted meanwhile, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        Make pairs of ranks. With an even number of ranks, ``pair.size`` is 2:

        >>> from cobre_comm import LocalBackend
        >>> with LocalBackend() as comm:
        ...     pair = comm.split(comm.rank // 2)
        >>> pair.rank, pair.size
        (0, 1)

        Reverse the order of ranks, and leave rank 0 without a communicator:

        >>> comm = LocalBackend()
        >>> print(comm.split(None if comm.rank == 0 else 0, key=-comm.rank))
        None
        """

    def shrink(self) -> Communicator:
        """Make a communicator of the survivors of a loss; collective of the survivors. Python only.

        All survivors call ``shrink``, each after it has got :class:`CollectiveFailed`; a rank that
        has not got this error yet may call ``shrink`` too. The new communicator is of the same
        backend, and has the survivors in their old order. A rank that dies meanwhile is left out as
        well. Either all survivors get a communicator of the same ranks, or all survivors get an
        error.

        This communicator stays broken. No item of its works can be claimed any more, and none of
        its regions can be fenced, but its regions stay readable. So copy finished results into
        regions of the new communicator, then close this one. Which iteration is finished must
        follow from data that all survivors agree on: for example, the smallest of the numbers that
        the survivors have.

        Returns
        -------
        Communicator
            Of this rank and the other survivors. Its errors name ranks by their new numbers.

        Raises
        ------
        CollectiveFailed
            On all survivors, if a rank lives and does not call ``shrink`` within the timeout; or if
            the network has fallen into parts, and the part of this rank is too small. A part
            continues if it has more than half of the ranks, or rank 0 and half of them. On ``mpi``
            always and at once, because MPI ends the whole job after a loss.
        AllocationFailed, InitializationFailed
            On all survivors, if one of them cannot have the memory, or if they cannot connect.
        InvalidCommunicator
            If this communicator is closed, or has been shrunk before. Also if another thread of
            this rank is inside one of its collectives: in this case nothing has changed, so call
            ``shrink`` later.

        See Also
        --------
        split : Make communicators of one that has lost no rank.

        Notes
        -----
        ULFM has the same function for MPI: W. Bland et al., "Post-failure recovery of MPI
        communication capability", Int. J. of HPC Applications 27 (2013). Survivors agree here by
        roll calls in shared memory or over sockets; ``docs/design/shrink.md`` has the protocol.

        Examples
        --------
        A loop that redoes the step in which a rank was lost. Start the program by ``cobre-comm run
        --survive``; without that option the launcher ends the survivors:

        >>> from cobre_comm import BackendKind, CollectiveFailed, create_communicator
        >>> comm, totals, step = create_communicator(BackendKind.LOCAL), [0, 0, 0], 0
        >>> while step < 3:
        ...     try:
        ...         totals[step] = comm.sum(step)
        ...         step += 1
        ...     except CollectiveFailed:
        ...         comm = comm.shrink()
        ...         step = comm.min(step)  # some may have done one step more
        >>> totals
        [0, 1, 2]
        """
        message = f"backend {self.backend} cannot go on after a rank is lost"
        raise CollectiveFailed("shrink", message=message)

    @abc.abstractmethod
    def create_work(self, n: int) -> Work:
        """Share items 0 to n - 1 out, one by one, to whichever rank asks; collective. Python only.

        ``create_work`` is for items that take different times. With equal shares of such items, all
        ranks would wait for the rank with the longest items. The ranks of a node count
        claimed items in shared memory, so a claim waits for no other rank. Between nodes, the items
        are divided beforehand, in blocks.

        Parameters
        ----------
        n : int
            Number of items, the same on all ranks; at least 0.

        Returns
        -------
        Work
            Its ``claim`` works in ``@njit`` code too.

        Raises
        ------
        TypeError, ValueError
            If ``n`` is no integer, or not from 0 to 2**48.
        AllocationFailed
            On all ranks alike, if one of them cannot have the memory; the error says which rank,
            and why. The communicator stays usable.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If the communicator cannot be used any more.

        Examples
        --------
        >>> from numba import njit
        >>> from cobre_comm import LocalBackend
        >>> @njit
        ... def solve(work, costs):
        ...     i = work.claim()
        ...     while i >= 0:
        ...         costs[i] = i * i
        ...         i = work.claim()
        >>> comm = LocalBackend()
        >>> costs, total = np.zeros(4), np.zeros(4)
        >>> solve(comm.create_work(4), costs)
        >>> comm.allreduce(costs, total)
        >>> total
        array([0., 1., 4., 9.])
        """

    def phase(self, name: str) -> Phase:
        """Return a context manager that attributes the time of a ``with`` block to a phase.

        A phase is no collective: each rank has its own phases, and statistics over ranks match
        phases by their names. Phases nest: in a block within a block the inner phase gets the time,
        and at the end of the inner block the outer phase continues, even after an exception. In
        ``@njit`` code :meth:`enter_phase` does the same.

        Statistics, traces and ``cobre-comm status`` show the seconds of computing, waiting and
        transferring in each phase. Time in collectives of another communicator counts as computing.

        Parameters
        ----------
        name : str
            As for :meth:`phase_number`.

        Returns
        -------
        Phase
            The context manager; it can be used in any number of ``with`` blocks.

        Raises
        ------
        TypeError, ValueError, InvalidCommunicator
            As :meth:`phase_number`.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> with comm.phase("backward"):
        ...     comm.barrier()
        >>> comm.stats().phases["backward"].collectives.calls
        1
        """
        return Phase(self, self.phase_number(name))

    def phase_number(self, name: str) -> int:
        """Return the number of the phase of that name, a new number for a new name. Python only.

        Numbers are 1, 2, 3, ... in the order in which this rank has named its phases; 0 is outside
        all phases. Pass numbers to ``@njit`` functions as arguments.

        Parameters
        ----------
        name : str
            Printable, at most 48 bytes, and not ``"outside"`` or ``"library"``.

        Returns
        -------
        int
            For :meth:`enter_phase`.

        Raises
        ------
        TypeError
            If ``name`` is no str.
        ValueError
            If ``name`` cannot be a name, or if 30 other names have a number.
        InvalidCommunicator
            If the communicator is closed, or another thread is inside a collective.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.phase_number("forward"), comm.phase_number("backward")
        (1, 2)
        """
        letters_of(name)
        return 0  # for backends that count no phases

    def enter_phase(self, number: int) -> int:
        """Enter a phase; return the number of the phase before, which you can enter again later.

        ``enter_phase`` is no collective. In ``@njit`` code it takes some 20 ns.

        Parameters
        ----------
        number : int
            From :meth:`phase_number`, or 0, which is outside all phases.

        Returns
        -------
        int
            The number of the phase that was under way.

        Raises
        ------
        TypeError
            If ``number`` is no integer.
        ValueError
            If no phase has that number.
        InvalidCommunicator
            If the communicator is closed, or another thread is inside a collective.

        Examples
        --------
        >>> from numba import njit
        >>> from cobre_comm import LocalBackend
        >>> @njit
        ... def iterate(comm, forward, backward):
        ...     outer = comm.enter_phase(forward)
        ...     comm.enter_phase(backward)
        ...     comm.enter_phase(outer)
        >>> comm = LocalBackend()
        >>> iterate(comm, comm.phase_number("forward"), comm.phase_number("backward"))
        >>> list(comm.stats().phases)
        ['forward', 'backward', 'outside']
        """
        return 0  # for backends that count no phases

    def _resume(self, number: int) -> int:
        """Enter a phase again at the end of a ``with`` block."""
        return self.enter_phase(number)

    def topology(self) -> Topology:
        """Return which ranks are on which node and CPUs, and what has started them. Python only.

        ``topology`` is no collective, because ranks have told each other the names of their hosts
        when they met.

        Returns
        -------
        Topology
            Hosts, the ranks of each node, the node of this rank, launcher and MPI library, and
            CPUs and NUMA nodes of each rank. Its ``repr`` is a table.

        Raises
        ------
        InvalidCommunicator
            If the communicator is closed.
        NotImplementedError
            If the backend is from another Python package, and does not tell its topology.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> LocalBackend().topology().ranks
        ((0,),)
        """
        raise NotImplementedError(f"topology: the backend {self.backend} does not tell it")

    def abort(self, code: int) -> NoReturn:
        """End all ranks of the job, this one included; never returns. Python only.

        Call ``abort`` after an error with which no rank can continue. Nothing is cleaned up: no
        ``finally``, no ``with`` block and no exit handler of the program runs.

        A rank that waits for this rank, or calls a collective later, ends with the same code. A
        rank that computes is ended by the launcher: ``cobre-comm run``, ``launch``, ``mpiexec`` or
        ``torchrun``. Under ``srun`` without ``--kill-on-bad-exit``, or without a launcher, such a
        rank ends at its next collective. Over ``mpi``, ``abort`` is MPI_Abort. The one rank of
        ``launch(fn, 1)`` is the calling program itself, so the program ends.

        Parameters
        ----------
        code : int
            Exit code of this process, from 1 to 255, and also of the job if the launcher can pass
            it on. ``launch`` raises a ``WorkerError`` that has the code.

        Raises
        ------
        TypeError, ValueError
            For a ``code`` that cannot be used.
        InvalidCommunicator
            If the communicator is closed.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> with LocalBackend() as comm:
        ...     if comm.size > 100:
        ...         comm.abort(3)
        """
        number = as_integer("abort", "code", code)
        if not 1 <= number <= aborting.LARGEST_CODE:
            largest = aborting.LARGEST_CODE
            raise ValueError(f"abort: code must be from 1 to {largest}, got {number}")
        self._check_open()
        rank = aborting.rank_of(self.rank)
        aborting.say(f"rank {rank} called abort({number})")
        self._end_job(aborting.Aborted(number, rank))

    def _end_job(self, aborted: aborting.Aborted) -> NoReturn:
        """Tell the other ranks, and end this process."""
        aborting.end_job(aborted)

    @abc.abstractmethod
    def stats(self) -> Stats:
        """Return calls, bytes and seconds of this rank by operation, and the ranks it waited for.

        ``stats`` is no collective: each rank has its own numbers, even if the communicator is
        broken. The numbers are always kept, in ``@njit`` code too. (Over ``local``, a collective
        that compiles to a copy or to nothing is not counted.)

        Returns
        -------
        Stats
            By operation and by phase: calls, bytes, seconds of waiting and of transferring, and how
            often and how long each rank was waited for; by phase also seconds of computing. Also
            the way that large calls take on one machine. The ``repr`` is a table, and ``to_csv``
            and ``to_parquet`` write a file.

        Raises
        ------
        InvalidCommunicator
            If the communicator is closed.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> with LocalBackend() as comm:
        ...     comm.barrier()
        ...     comm.stats()["barrier"].calls
        1
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Leave the communicator; idempotent. Ranks that wait for this rank learn that it left.

        Raises
        ------
        InvalidCommunicator
            If another thread is inside a collective, or if a signal handler calls ``close`` during
            a collective; in both cases nothing has changed.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.close()
        >>> comm.close()
        """

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in SAID]


# Attributes of the class, because a __getattr__ would make every call of a method slower.
for _name in SAID:
    setattr(Communicator, _name, OtherName(_name))
