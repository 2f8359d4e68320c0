"""The communicator of every backend: a record, the entries, and how a Python call reaches them.

The code of a backend says how ranks meet: it makes a
:class:`~cobre_comm.backends.membership.Membership`. It also splits communicators, and has the class
that users see. Everything that the backends have in common is in this file.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import itertools
import math
import os
import socket
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

import numpy as np
from cobre_kernels.collective import comm as states
from cobre_kernels.collective import entry, guard, phases, status
from cobre_kernels.collective.calls import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    CREATE_REGION,
    CREATE_WORK,
    ENTER,
    EXACT_SUM,
    FENCE,
    GATHERV,
    HASH_MASK,
    HASH_SHIFT,
    OPERATIONS,
    PHASE_NUMBER,
    SPLIT_COLOR,
    STOP,
    ExactSum,
    Gatherv,
    own_mark,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction import exact_sum, fold
from cobre_kernels.collective.seeing import journal
from cobre_kernels.machine import code, libc
from cobre_kernels.machine.record import WORD_BYTES, peek_now, poke_now
from numpy.typing import DTypeLike, NDArray

from cobre_comm import failure, old_names
from cobre_comm.arguments import slow_path
from cobre_comm.arguments.numbers import as_integer
from cobre_comm.backends import fast_methods
from cobre_comm.backends.agreement import Group, agree_on_memory, attempt
from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.comm_group import CommGroup
from cobre_comm.backends.comm_memory import comm_words
from cobre_comm.backends.journals import Journals
from cobre_comm.backends.late_lines import prepare_late_lines
from cobre_comm.backends.membership import Membership, Node, NodesRecords, alone
from cobre_comm.backends.shrink import Alone, Council, shrink
from cobre_comm.backends.split import Part, check_color, find_part
from cobre_comm.backends.stop_signals import STOP_SIGNALS
from cobre_comm.backends.trace import start_trace
from cobre_comm.config import Config, late_s, prints_stats
from cobre_comm.contract.communicator import Array, Communicator, Counts
from cobre_comm.contract.numba_types import LateType
from cobre_comm.contract.phases import letters_of
from cobre_comm.contract.shared_region import (
    LEADER,
    OWNER,
    HeapRegion,
    Lengths,
    Shape,
    SharedRegion,
    ShmRegion,
    heap_zeros,
    region_layout,
)
from cobre_comm.contract.topology import Topology
from cobre_comm.contract.work import CLAIMS_WORDS, LARGEST_COUNT, Work
from cobre_comm.errors import CommError, InvalidCommunicator, InvalidRoot
from cobre_comm.journal.copied import Copied, words_of
from cobre_comm.journal.stats import Stats
from cobre_comm.reduce_op import ReduceOp
from cobre_comm.reports import raised, report_pipe
from cobre_comm.reports.launcher import given, launcher_name
from cobre_comm.reports.tracebacks import methods_tell_callers, tells_callers
from cobre_comm.system.cpus import place_of

if TYPE_CHECKING:
    from cobre_comm.backends.spec import BackendSpec


_ENTRIES = {**entry.ENTRIES, EXACT_SUM: exact_sum.exact_sum_entry}
# Kernels that are loaded with the first communicator, because later no descriptor may be left to
# load them with.
_FOR_ERRORS = (guard.give_up_kernel, journal.copy_journal_kernel, phases.resume_kernel)


@methods_tell_callers()
class KernelBackend(Communicator):
    """A communicator with collectives that are kernels on a record of private memory.

    Each backend's class gets fast methods in place of the Python methods of the same names
    (``fast_methods.py``). A fast method serves plain arguments. The methods here convert or refuse
    all other arguments, call the entry, and raise what its outcome means.

    A new object is a rank that is alone until :meth:`_join`. ``bodies`` are the kernels that the
    rank will probably need; when the ranks have met, other kernels may replace them. ``split``
    makes the configurations of the parts from ``config``.
    """

    # The fast methods find the record in the first slot of an object. Python orders slots by name,
    # and names the slot ``__words`` in full ``_KernelBackend__words``. This name is sorted first,
    # because it has a capital letter behind ``_``.
    __slots__ = (
        "__weakref__", "__words", "_address", "_comm", "_config", "_give_back", "_handled",
        "_journals", "_late_lines", "_membership", "_name", "_nodes", "_phases", "_rank",
        "_regions", "_sends", "_shrunk", "_shut", "_size", "_stop_signals", "_trace",
    )  # fmt: skip
    _config: Config | None
    _numba_type_: Any = LateType("communicator")

    def __init__(
        self, spec: BackendSpec, config: Config | None, bodies: Bodies, rank: int, size: int
    ) -> None:
        self._config = config
        self._rank = rank
        self._size = size
        self.__words = comm_words(size)
        self._address: int = self.__words.ctypes.data
        self._comm = comm = COMM.at(self._address)
        comm.rank, comm.size = rank, size
        comm.backend = spec.number
        comm.late_ns = int(late_s(spec.name) * libc.NS_PER_S)
        self._name = spec.name
        self._membership = alone(rank, size, bodies)
        self._nodes: NodesRecords | None = None
        self._regions = itertools.count()
        self._phases: dict[str, int] = {}
        self._shrunk = ""  # after a shrink: why this communicator cannot be shrunk again
        self._stop_signals: tuple[int, ...] = ()
        self._give_back: Callable[[], None] = lambda: None
        self._sends = np.zeros(size, dtype=np.int64)
        comm.sends = self._sends.ctypes.data
        failure.TIMEOUT_VARIABLES[spec.number] = given(spec.timeout_variable)
        # This comes before anything that may fail: ``close`` needs the journal, even if the
        # communicator is only half made.
        self._journals = Journals(comm)
        self._late_lines = prepare_late_lines(comm, self.__words, self._journals)
        self._trace = start_trace(comm, self._journals.number, spec.name)
        self._take_kernels(bodies)
        self._handled = id(sys.exception())
        raised.living.add(self)

    @classmethod
    def _of(cls, *given: Any) -> Self:
        """Make a communicator by its ``_begin``, which takes more arguments than ``__init__``."""
        made = cls.__new__(cls)
        made._begin(*given)  # type: ignore[attr-defined]  # of the backends that call this
        return made

    def _take_kernels(self, bodies: Bodies) -> None:
        """Write the kernels' addresses into the record; load those for errors and exit now."""
        comm = self._comm
        comm.python = fast_methods.install(_backend_class(type(self)), serve_slowly)
        for operation, kernel in _ENTRIES.items():
            comm.collectives[operation].entry = kernel.address
        bodies.give_to(comm)
        comm.explain = id(failure.explain)
        comm.fail = guard.fail_kernel.address
        comm.refuse = guard.refuse_kernel.address
        comm.fold_kernel = fold.fold_kernel.address
        self._shut = guard.shut_kernel.call  # loaded now: __del__ may run at Python's exit
        for kernel in _FOR_ERRORS:
            _ = kernel.call

    def _join(self, met: Membership) -> None:
        """Use the membership that this rank has after the rendezvous."""
        comm, here, attachment = self._comm, met.here, met.attachment
        if met.bodies is not self._membership.bodies:
            met.bodies.give_to(comm)
        self._membership = met
        comm.is_leader = met.leader == self._rank
        if attachment is None:
            return
        if met.nodes == 1 or met.transport is None:
            attachment.describe(comm)
            self._journals.move_to(attachment, attachment.first_journal(), here)
            return
        self._nodes = met.transport.begin(comm, self.__words, attachment)
        if len(here) > 1:  # a rank alone on its node keeps its own journal
            self._journals.move_to(attachment, attachment.first_journal(), here)
        self._journals.find(met.transport.pids)
        comm.gives_gil = 1

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self._name

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def is_leader(self) -> bool:
        """Whether this rank is to write a region as a whole."""
        return bool(self._comm.is_leader)

    def barrier(self) -> None:
        """Return when all ranks have entered."""
        self._agree_on(BARRIER, 0)

    def broadcast(self, buf: Array, root: int = 0) -> None:
        """Give every rank the bytes of the root."""
        root = as_integer("broadcast", "root", root)
        self._run(BROADCAST, slow_path.broadcast_call(buf, root, self._rank))

    def allreduce(self, send: Array, recv: Array, op: ReduceOp = ReduceOp.SUM) -> None:
        """Reduce element by element over all ranks, in rank order; every rank gets the result."""
        op = slow_path.as_reduce_op(op)
        self._run(ALLREDUCE, slow_path.allreduce_call(send, recv, op))

    def allgatherv(self, send: Array, recv: Array, counts: Counts, displs: Counts) -> None:
        """Gather blocks of different lengths from all ranks, on all ranks."""
        counts = slow_path.as_table("allgatherv", "counts", counts)
        displs = slow_path.as_table("allgatherv", "displs", displs)
        self._run(ALLGATHERV, slow_path.blocks_call("allgatherv", send, recv, counts, displs))

    def gatherv(
        self,
        send: Array,
        recv: Array | None,
        counts: Counts | None,
        displs: Counts | None,
        root: int = 0,
    ) -> None:
        """Gather blocks of different lengths from all ranks, on the root."""
        root = as_integer("gatherv", "root", root)
        if root == self._rank:
            counts = slow_path.as_table("gatherv", "counts", counts)
            displs = slow_path.as_table("gatherv", "displs", displs)
            blocks = slow_path.blocks_call("gatherv", send, recv, counts, displs)
            call = Gatherv(*blocks, root)
        else:
            call = slow_path.sender_call(send, root)
        self._run(GATHERV, call)

    def exact_sum(self, values: Array) -> float:
        """Return the sum of all elements of all ranks, rounded once."""
        array, dtype = slow_path.exact_sum_values(values)
        digits = np.zeros(exact_sum.WORDS, dtype=np.int64)
        self._run(EXACT_SUM, ExactSum(array.ctypes.data, array.size, dtype, digits.ctypes.data))
        return float(digits.view(np.float64)[0])

    def _run(self, operation: int, call: Any) -> None:
        """Call an entry; raise what its outcome means."""
        try:
            outcome = _ENTRIES[operation].call(self._address, *call)
        except OverflowError:  # the integer does not fit into 64 bits
            raise InvalidRoot(call.root, self._size) from None
        if outcome:
            raise self._error(operation, outcome, call)

    def stop_requested(self) -> bool:
        """Tell whether some rank was asked to stop, and a collective has told all ranks so."""
        self._check_usable()
        return bool(self._comm.signature & STOP)

    def phase_number(self, name: str) -> int:
        """Return the number of the phase with that name; a new name gets a new number."""
        self._check_open()
        if name not in self._phases:
            letters = letters_of(name)
            if len(self._phases) == journal.PHASES:
                raise ValueError(
                    f"a communicator has at most {journal.PHASES} phases, and {name!r} would be "
                    "one more"
                )
            words = words_of(letters, journal.NAME_BYTES)
            number = phases.name_phase_kernel.call(self._address, words.ctypes.data)
            if number < 0:
                raise self._error(PHASE_NUMBER, -number)
            self._phases[name] = number
        return self._phases[name]

    def enter_phase(self, number: int) -> int:
        """Enter a phase; return the number of the phase before, to which the caller can return."""
        number = as_integer("enter_phase", "number", number)
        try:
            before: int = phases.enter_kernel.call(self._address, number)
        except OverflowError:  # the integer does not fit into 64 bits
            before = -status.BAD_PHASE
        if before < 0:
            raise self._error(ENTER, -before)
        return before

    def _resume(self, number: int) -> int:
        """Return to an earlier phase; the result is below zero if the phase cannot be entered."""
        return int(phases.resume_kernel.call(self._address, number))

    def _take_signals(self, numbers: Iterable[int]) -> None:
        """Make these signals set this process's stop flag, until the communicator is closed."""
        self._stop_signals = tuple(numbers)
        self._give_back = STOP_SIGNALS.take(self._stop_signals)

    def _agree_on(self, signature: int, compared: int) -> None:
        """Wait for the other ranks, all of which must give these two words."""
        outcome = entry.barrier_entry.call(self._address, signature, compared)
        if outcome:
            raise self._error(signature & 0xFF, outcome)

    def _error(self, operation: int, outcome: int, call: Any = None) -> BaseException:
        """Return the exception that stands for an outcome; the caller is to raise it at once."""
        return failure.put_into_words(self._address, operation, outcome, call).raised()

    @old_names.also_by_position("placement")
    def create_shared_region(
        self, shape: Shape, dtype: DTypeLike = np.float64, *, placement: str = OWNER
    ) -> SharedRegion:
        """Create an array of zeros that the ranks of a node share; collective."""
        lengths, element_type = region_layout(shape, dtype, placement)
        words = f"{lengths} {slow_path.describe_dtype(element_type)} {placement}"
        layout = zlib.crc32(words.encode())
        signature = CREATE_REGION | (layout & HASH_MASK) << HASH_SHIFT
        self._agree_on(signature, math.prod(lengths) * element_type.itemsize)
        with self._together("create_shared_region"):
            return self._make_region(lengths, element_type, placement)

    def _make_region(
        self, shape: Lengths, element_type: np.dtype[Any], placement: str
    ) -> SharedRegion:
        """Return a region on which all ranks have agreed; on failure all ranks raise."""
        met, group = self._membership, CommGroup(self)
        if met.shares and met.attachment is not None:
            shared = met.attachment.map_region(group, shape, element_type, met.leader, placement)
            return ShmRegion(self, shared, next(self._regions))
        heap, problem = attempt(lambda: heap_zeros(shape, element_type))
        agree_on_memory(group, math.prod(shape) * element_type.itemsize, problem)
        assert heap is not None
        return HeapRegion(self, heap, next(self._regions))

    def create_work(self, n: int) -> Work:
        """Share items 0 to n - 1 out, one by one, to whichever rank asks; collective."""
        count = as_integer("create_work", "n", n)
        if not 0 <= count <= LARGEST_COUNT:
            raise ValueError(f"create_work: n must be from 0 to {LARGEST_COUNT}, got {count}")
        self._agree_on(CREATE_WORK, count)
        met, group = self._membership, CommGroup(self)
        with self._together("create_work"):
            leader = met.leader if met.shares else self._rank
            leaders = group.gather_rows(np.array([leader]))
            firsts, ranks = np.unique(leaders, return_counts=True)
            region = self._make_region((2 * CLAIMS_WORDS,), np.dtype(np.int64), LEADER)
            claimed, problem = attempt(lambda: np.zeros(count, dtype=np.int64))
            agree_on_memory(group, count * WORD_BYTES, problem)
            assert claimed is not None
            node = firsts.tolist().index(leader)
            return Work(self, ranks.tolist(), node, region, claimed)

    def _seconds(self, ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Convert ticks to seconds, by the clocks that this rank's journal has noted."""
        copied = Copied.at(self._comm.journal.address)
        return ticks * (copied.ns_per_tick / libc.NS_PER_S if copied is not None else 0.0)

    @overload
    def split(self, color: int, key: int = 0) -> Communicator: ...
    @overload
    def split(self, color: int | None, key: int = 0) -> Communicator | None: ...
    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of the ranks that give the same color, ordered by (key, rank)."""
        color, key = check_color(color, key)
        self._agree_on(SPLIT_COLOR, 0)
        with self._together("split"):
            group = CommGroup(self)
            made, error = self._make_part(find_part(group, color, key), group)
        if error is not None:
            raise error
        return made

    def _make_part(self, part: Part, group: Group) -> tuple[KernelBackend | None, Exception | None]:
        """Make the communicator of a part; return it, or the error on which all ranks agree.

        ``group`` is the group of this communicator's ranks, in which they agree.
        """
        raise NotImplementedError

    def shrink(self) -> Communicator:
        """Return a communicator of the surviving ranks."""
        self._begin_to_shrink()
        try:
            made = shrink(self._convene(), self._make_part)
        except BaseException as error:
            self._shrunk = f"the shrink of this communicator has failed: {raised.line_of(error)}"
            raise
        made._take_signals(self._stop_signals)
        report_pipe.forget_lost()
        return made

    def _begin_to_shrink(self) -> None:
        """Break this communicator for good, so that ranks that wait in it for this rank stop."""
        self._check_open()
        if self._shrunk:
            raise InvalidCommunicator(self._shrunk)
        self._refuse_if_busy("shrink", self._give_up(status.SHRUNK))
        self._shrunk = "this communicator has been shrunk already; use the one that shrink returned"

    def _convene(self) -> Council:
        """Return the council of the survivors, which needs no collective of this communicator."""
        attachment = self._membership.attachment
        if self._size == 1 or attachment is None:
            return Alone(self._rank, self._size)
        return attachment.convene(failure.TIMEOUT_VARIABLES[self._comm.backend])

    @contextlib.contextmanager
    def _together(self, name: str) -> Iterator[None]:
        """Break the communicator if this rank is interrupted between steps that belong together.

        Otherwise the other ranks would wait for the next step of this rank until the timeout. A
        ``CommError`` needs no further action: all ranks have agreed on the error, or the
        communicator is broken already. The steps serve the library's method ``name``. The time of
        that method counts in the phase *library*, and in no phase of the program.
        """
        outer = -1  # no phase
        try:
            outer = self._resume(journal.IN_LIBRARY)
            with self._serving(name):
                yield
        except CommError:
            raise
        except BaseException as error:
            self._tell_raised(error)
            self._give_up(status.INTERRUPTED)
            raise
        finally:
            self._resume(outer)

    @contextlib.contextmanager
    def _serving(self, name: str) -> Iterator[None]:
        """Make ranks compare for which method of the library their collectives are called.

        If one such method calls another, the outermost method counts. Ranks disagree if their
        methods differ, or if one rank's collective was called by the program itself.
        """
        outer = self._comm.own
        self._comm.own = outer or own_mark(name)
        try:
            yield
        finally:
            self._comm.own = outer

    def _fence_region(self, identity: int) -> None:
        """Wait at a fence for all ranks of this node; the step publishes all writes before it."""
        self._agree_on(FENCE, identity)

    def _check_usable(self) -> None:
        """Raise ``InvalidCommunicator`` if no collective may begin any more."""
        refusal = _REFUSALS.get(self._guard, 0)
        if refusal:
            raise self._error(BARRIER, refusal)

    @property
    def _guard(self) -> int:
        return int(peek_now(self._comm.guard))

    def _check_open(self) -> None:
        """Raise ``InvalidCommunicator`` if the communicator is closed, or of a parent process."""
        if self._guard != states.BROKEN:
            self._check_usable()

    def stats(self) -> Stats:
        """Return what this rank has spent in each operation, and for which ranks it has waited."""
        self._check_open()
        return self._journals.stats()

    def topology(self) -> Topology:
        """Return which ranks are on which node, and what has started them."""
        self._check_open()
        met = self._membership
        nodes = met.every_node
        if not nodes:
            places = [place_of()] if met.attachment is None else met.attachment.places()
            nodes = [Node(socket.gethostname(), tuple(met.here), places)]
        hosts, ranks, _ = zip(*nodes, strict=True)
        [node] = [number for number, here in enumerate(ranks) if self._rank in here]
        of_rank = {r: p for each in nodes for r, p in zip(each.ranks, each.places, strict=True)}
        cpus, numa = zip(*(of_rank[rank] for rank in range(self._size)), strict=True)
        launcher = launcher_name(os.environ)
        return Topology(hosts, ranks, node, launcher, self._library, cpus, numa, code.description())

    @property
    def _library(self) -> str:
        """Name and version of the library that moves data between nodes; "" for our own code."""
        return ""

    def close(self) -> None:
        """Leave the group; idempotent. Ranks that wait for this rank learn that it has left.

        ``InvalidCommunicator`` is raised, and nothing changes, if a collective is under way in
        another thread, or waits while a signal handler calls this.
        """
        error = sys.exception()
        if id(error) != self._handled:  # the exception was raised after this communicator was made
            self._tell_raised(error)
        found = int(self._shut(self._address))
        self._refuse_if_busy("close", found)
        try:  # writing files may take long, and may raise
            if found == states.IDLE:  # a broken communicator has told the other ranks already
                self._say_goodbye()
            if found in _OPEN and prints_stats():
                self._journals.print_table()
            if self._trace is not None:
                self._trace.finish()
        finally:
            self._let_go(found)

    def _let_go(self, found: int) -> None:
        """Release what this communicator holds; ``found`` is what its guard held before."""
        met = self._membership
        self._journals.hide()
        self._give_back()
        if met.attachment is not None and found in _OPEN:
            self._comm.node.control = 0
            met.attachment.close()
            self._membership = dataclasses.replace(met, attachment=None)
            self._journals.leave_segment()
        if met.transport is not None:
            met.transport.let_go(found)

    def _say_goodbye(self) -> None:
        """Tell the ranks that may wait for this rank that it closes."""
        attachment = self._membership.attachment
        if attachment is not None and self._comm.node.control.address:
            attachment.say_goodbye(self._comm)
        if self._nodes is not None:
            self._nodes.say_goodbye()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # closed at exit already, or the system releases everything soon
        # Errors of a half-made communicator, or of one that another thread uses, are ignored.
        with contextlib.suppress(AttributeError, InvalidCommunicator):
            self._handled = id(sys.exception())  # this exception is not the reason for closing
            self.close()

    def _end_by(self, error: BaseException | None) -> None:
        """At the end of a program, note the exception by which this rank ends, then close."""
        with contextlib.suppress(InvalidCommunicator):
            self._tell_raised(error)
            self.close()

    def _tell_raised(self, error: BaseException | None) -> None:
        """Note in the journal, for the other ranks, the exception by which this rank leaves."""
        if error is None or isinstance(error, (SystemExit, GeneratorExit)):  # no failure
            return
        if self._guard in _OPEN:
            self._journals.note_raised(raised.line_of(error))

    def _refuse_if_busy(self, name: str, found: int) -> None:
        """Raise ``InvalidCommunicator`` if the guard shows that a collective is under way."""
        if found == states.BUSY:
            in_handler = failure.is_interrupted(self._comm)
            why = failure.IN_HANDLER if in_handler else failure.IN_THREAD
            raise InvalidCommunicator(f"{name}: {why}")

    def _give_up(self, why: int) -> int:
        """Break this communicator, with a status as the reason, unless it is in use or has ended.

        Return what the guard held before.
        """
        return int(guard.give_up_kernel.call(self._address, why))

    def _mark_forked(self) -> None:
        """In a forked child, mark this communicator as the parent's."""
        poke_now(self._comm.guard, states.FORKED)
        if self._membership.transport is not None:
            self._membership.transport.let_go(states.FORKED)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a communicator cannot be pickled: create one in each process, and pass it to an "
            "@njit(cache=True) function as an argument, not in a closure"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self._rank}, size={self._size})"


@tells_callers
def serve_slowly(
    comm: KernelBackend, operation: int, outcome: int, names: tuple[str, ...] | None, *values: Any
) -> None:
    """Serve a call that the fast path has passed on, or raise the exception of its outcome.

    If the fast path has refused the arguments, the Python method refuses them again, with a
    sentence that explains why.
    """
    if outcome == status.BUSY_ELSEWHERE or outcome >= status.IS_BROKEN:
        raise comm._error(operation, outcome)
    serve: Callable[..., None] = getattr(KernelBackend, OPERATIONS[operation])
    if names is None:
        serve(comm, *values)
    else:
        first_named = len(values) - len(names)
        keywords = dict(zip(names, values[first_named:], strict=True))
        serve(comm, *values[:first_named], **keywords)


def _backend_class(cls: type) -> type:
    """Return the class of the backend itself; ``cls`` may be a user's subclass."""
    return next((each for each in cls.__mro__ if "_numba_type_" in each.__dict__), cls)


_OPEN = (states.IDLE, states.BROKEN)
_REFUSALS = {
    states.BROKEN: status.IS_BROKEN,
    states.CLOSED: status.IS_CLOSED,
    states.FORKED: status.IS_FORKED,
    states.FINALIZED: status.IS_FINALIZED,
}


def _mark_forked() -> None:
    """In a forked child, mark every communicator as the parent's."""
    for comm in list(raised.living):
        comm._mark_forked()


os.register_at_fork(after_in_child=_mark_forked)
atexit.register(raised.end_all_at_exit)
