"""The base of all backends: a record, the entries, and how a Python call reaches them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from cobre_kernels.collective import comm as states
from cobre_kernels.collective import entry, guard, status
from cobre_kernels.collective.calls import (
    BARRIER,
    CREATE_REGION,
    EXACT_SUM,
    FENCE,
    HASH_MASK,
    SPLIT_COLOR,
    STOP,
    own_mark,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.from_python import fast_path
from cobre_kernels.collective.reduction import exact_sum, fold
from cobre_kernels.collective.seeing import journal, trace
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiling.cache_folder import refusal
from cobre_kernels.machine.compiling.progress import progress
from cobre_kernels.machine.record import peek_now, poke_now
from cobre_kernels.nodes import records  # noqa: F401  # whose table every wait's clock reads
from numpy.typing import DTypeLike

from cobre_comm import failure, slow_path
from cobre_comm.backends import fast_methods
from cobre_comm.backends.comm_group import CommGroup
from cobre_comm.backends.comm_memory import comm_words
from cobre_comm.backends.journals import Journals
from cobre_comm.backends.late_lines import prepare_late_lines
from cobre_comm.backends.python_calls import PythonCalls, serve_slowly
from cobre_comm.backends.split import Part, check_color, find_part
from cobre_comm.backends.stop_signals import STOP_SIGNALS
from cobre_comm.backends.trace import start_trace
from cobre_comm.common import raised
from cobre_comm.common.call_forms import tells_forms
from cobre_comm.config import late_s, prints_stats
from cobre_comm.errors import CommError, InvalidCommunicator
from cobre_comm.journal.stats import Stats
from cobre_comm.loading import Bodies
from cobre_comm.shared_region import region_layout

if TYPE_CHECKING:
    from cobre_comm.backends.spec import BackendSpec

logger = logging.getLogger("cobre_comm")


# Every backend runs the entries, and the kernels that they share.
COMMON_KERNELS = (
    *entry.ENTRIES.values(),
    *exact_sum.KERNELS,
    *fast_path.KERNELS,
    *fold.KERNELS,
    *guard.KERNELS,
    *journal.KERNELS,
    *trace.KERNELS,
)


@tells_forms("comm")
class KernelBackend(PythonCalls):
    """A communicator whose collectives are kernels on a record of private memory.

    Each backend's class gets fast methods in place of the Python methods of the same names
    (``fast_methods.py``). They serve plain arguments; ``python_calls.py`` serves all others.
    """

    __slots__ = (
        "__weakref__", "_address", "_comm", "_give_back", "_handled", "_journals", "_late_lines",
        "_name", "_rank", "_sends", "_shut", "_size", "_trace",
    )  # fmt: skip

    def __init__(
        self, spec: BackendSpec, bodies: Bodies, rank: int, size: int, *, is_leader: bool
    ) -> None:
        self._rank = rank
        self._size = size
        self._words = comm_words(size)
        self._address: int = self._words.ctypes.data
        self._comm = comm = COMM.at(self._address)
        comm.rank, comm.size, comm.is_leader = rank, size, is_leader
        comm.backend = spec.number
        comm.late_ns = int(late_s(spec.name) * libc.NS_PER_S)
        self._name = spec.name
        self._give_back: Callable[[], None] = lambda: None
        self._sends = np.zeros(size, dtype=np.int64)
        comm.sends = self._sends.ctypes.data
        failure.TIMEOUT_VARIABLES[spec.number] = spec.timeout_variable
        if rank == 0 and (refused := refusal(os.environ)):
            _warn_once(refused)
        with progress() if rank == 0 else contextlib.nullcontext():
            # Before what closes it: that writes into the journal, also of a half-made communicator.
            self._journals = Journals(comm)
            self._late_lines = [
                prepare_late_lines(comm, comm, range(size), self._words, self._journals)
            ]
            self._trace = start_trace(comm, self._journals.number, spec.name)
            self._compile(bodies)
        self._handled = id(sys.exception())
        raised.living.add(self)

    def _compile(self, bodies: Bodies) -> None:
        """Note the addresses of the kernels, which are compiled now or found in numba's cache."""
        comm = self._comm
        comm.python = fast_methods.install(_backend_class(type(self)), serve_slowly)
        for operation, kernel in entry.ENTRIES.items():
            comm.collectives[operation].entry = kernel.address
        comm.collectives[EXACT_SUM].entry = exact_sum.exact_sum_entry.address
        bodies.give_to(comm)
        comm.explain = failure.explain_address()
        comm.fail = guard.fail_kernel.address
        comm.refuse = guard.refuse_kernel.address
        comm.fold_kernel = fold.fold_kernel.address
        self._shut = guard.shut_kernel.call  # loaded now: __del__ may run at exit

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self._name

    @property
    def rank(self) -> int:
        """This rank."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def is_leader(self) -> bool:
        """Whether this rank populates a region as a whole."""
        return bool(self._comm.is_leader)

    def stop_requested(self) -> bool:
        """Tell whether a rank has been asked to stop, as all ranks know since a collective."""
        self._check_usable()
        return bool(self._comm.signature & STOP)

    def _take_signals(self, numbers: Iterable[int]) -> None:
        """Have these signals ask this process to stop, until the communicator is closed."""
        self._give_back = STOP_SIGNALS.take(numbers)

    def _agree_on_region(self, count: int, dtype: DTypeLike) -> tuple[int, np.dtype[Any]]:
        """Check the arguments of a new region, and that all ranks give the same ones."""
        elements, element_type = region_layout(count, dtype)
        shape = zlib.crc32(f"{elements} {slow_path.describe_dtype(element_type)}".encode())
        signature = CREATE_REGION | (shape & HASH_MASK) << 32
        self._agree_on(signature, elements * element_type.itemsize)
        return elements, element_type

    @property
    def _group(self) -> CommGroup:
        return CommGroup(self)

    @overload
    def split(self, color: int, key: int = 0) -> KernelBackend: ...
    @overload
    def split(self, color: int | None, key: int = 0) -> KernelBackend | None: ...
    def split(self, color: int | None, key: int = 0) -> KernelBackend | None:
        """Return a communicator of the ranks that give the same color, ordered by (key, rank)."""
        color, key = check_color(color, key)
        self._agree_on(SPLIT_COLOR, 0)
        with self._together("split"):
            made, error = self._make_part(find_part(self._group, color, key))
        if error is not None:
            raise error
        return made

    def _make_part(self, part: Part) -> tuple[KernelBackend | None, Exception | None]:
        """Make the communicator of a part; return an error that all ranks have agreed on."""
        raise NotImplementedError

    @contextlib.contextmanager
    def _together(self, name: str) -> Iterator[None]:
        """Break the communicator if this rank is interrupted between steps that belong together.

        Otherwise the other ranks would wait for its next step until the timeout. An error of ours
        is agreed on by all ranks, or has broken the communicator already.
        """
        try:
            with self._own_calls(name):
                yield
        except CommError:
            raise
        except BaseException as error:
            self._tell_raised(error)
            guard.give_up_kernel.call(self._address)
            raise

    @contextlib.contextmanager
    def _own_calls(self, name: str) -> Iterator[None]:
        """Mark collectives as the library's own, which it needs for what the program has called."""
        self._comm.own = own_mark(name)
        try:
            yield
        finally:
            self._comm.own = 0

    def _fence_region(self, identity: int) -> None:
        """Wait for all ranks at a fence: a step publishes all writes before it."""
        self._agree_on(FENCE, identity)

    def _check_usable(self) -> None:
        """Raise ``InvalidCommunicator`` if no collective may begin any more."""
        refusal = _REFUSALS.get(self._guard, 0)
        if refusal:
            self._raise(BARRIER, refusal)

    @property
    def _guard(self) -> int:
        return int(peek_now(self._comm.guard))

    @_guard.setter
    def _guard(self, value: int) -> None:
        poke_now(self._comm.guard, value)

    def stats(self) -> Stats:
        """Return what this rank has spent on each operation, and for whom it has waited."""
        refusal = _REFUSALS.get(self._guard, 0)
        if refusal and refusal != status.IS_BROKEN:
            self._raise(BARRIER, refusal)
        return self._journals.stats()

    def close(self) -> None:
        """Leave the group; idempotent."""
        self._end()

    def _end_by(self, error: BaseException | None) -> None:
        """Close, and tell the others by which exception this rank ends; at the end of a program."""
        with contextlib.suppress(InvalidCommunicator):
            self._tell_raised(error)
            self.close()

    def _tell_raised(self, error: BaseException | None) -> None:
        """Note by which exception this rank leaves, where the others will read it."""
        if error is None or raised.is_an_ending(error):
            return
        if self._guard in (states.IDLE, states.BROKEN):
            self._journals.note_raised(raised.line_of(error))

    def _end(self) -> int:
        """Let no collective begin any more; return what the guard held.

        Raises
        ------
        InvalidCommunicator
            If one is under way in another thread, or waits while a signal handler calls this; then
            nothing has changed.
        """
        error = sys.exception()
        if id(error) != self._handled:  # it was not raised before this communicator was made
            self._tell_raised(error)
        found = int(self._shut(self._address))
        if found == states.BUSY:
            in_handler = failure.is_interrupted(self._comm)
            why = failure.IN_HANDLER if in_handler else "another thread is inside a collective"
            raise InvalidCommunicator(f"close: {why}")
        if found in (states.IDLE, states.BROKEN) and prints_stats():
            self._journals.print_table()
        if self._trace is not None:
            self._trace.finish()
        self._journals.hide()
        self._give_back()
        return found

    def _mark_forked(self) -> None:
        """In a forked child: this communicator is the parent's."""
        self._guard = states.FORKED

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a communicator cannot be pickled: create one in each process, and pass it to an "
            "@njit(cache=True) function as an argument, not in a closure"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self._rank}, size={self._size})"


@functools.cache
def _warn_once(sentence: str) -> None:
    logger.warning(sentence)


def _backend_class(cls: type) -> type:
    """Return the backend's own class among the bases of a class that a user may have made."""
    return next((each for each in cls.__mro__ if "_numba_type_" in each.__dict__), cls)


_REFUSALS = {
    states.BROKEN: status.IS_BROKEN,
    states.CLOSED: status.IS_CLOSED,
    states.FORKED: status.IS_FORKED,
    states.FINALIZED: status.IS_FINALIZED,
}


def _mark_forked() -> None:
    """In a forked child: no communicator of the parent is its own."""
    for comm in list(raised.living):
        comm._mark_forked()


os.register_at_fork(after_in_child=_mark_forked)
atexit.register(raised.end_all_at_exit)
