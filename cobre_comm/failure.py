"""Makes the exception that stands for a kernel's status, for Python and for @njit code."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from cobre_kernels.collective import comm as states
from cobre_kernels.collective import status
from cobre_kernels.collective.calls import (
    ALLGATHER,
    ALLGATHERV,
    ALLREDUCE,
    BROADCAST,
    DATA_CALLS,
    GATHERV,
    OPERATIONS,
    REGION_PART,
    RESET,
    own_call,
    unpack_signature,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.record import WORD_BYTES, View, peek_now, poke_now

from cobre_comm.arguments.mistakes import (
    CONTIGUOUS,
    COUNTS,
    OP,
    OUTPUT,
    RECV_HINT,
    REGION_IS_CLOSED,
    WORK_IS_CLOSED,
    WORK_IS_RESET,
    explained,
    outside_region,
)
from cobre_comm.errors import (
    CollectiveFailed,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    named,
)
from cobre_comm.journal.copied import describe
from cobre_comm.journal.telling import raised_by, tell
from cobre_comm.reduce_op import ReduceOp
from cobre_comm.reports import aborting, report_pipe
from cobre_comm.reports.alike import alike

# By the number of a backend: the environment variable of its timeout. The constructor of a
# communicator fills in the row of its backend.
TIMEOUT_VARIABLES: dict[int, str] = {}

# By the reason of a lost rank: the words about one such rank, and about several.
_REASONS = {
    states.DIED: ("died (its process has ended)", "died (their processes have ended)"),
    states.LEFT: ("closed its communicator", "closed their communicators"),
    states.GAVE_UP: ("gave up after an error or an interrupt",) * 2,
    states.GARBLED: ("sent bytes that are not of the protocol",) * 2,
    states.UNREACHABLE: (
        "cannot be reached any more (its machine or the network)",
        "cannot be reached any more (their machines or the network)",
    ),
}


class Worded(NamedTuple):
    """An exception to raise, the ranks that this rank has lost, and whether these still run."""

    error: BaseException
    lost: tuple[int, ...] = ()
    they_run: bool = False

    def raised(self) -> BaseException:
        """Return the exception for the caller to raise; note the lost ranks for the launcher."""
        report_pipe.note_lost(self.lost, they_run=self.they_run)
        return self.error


class Failure(Exception):  # numba raises classes of Exception alone
    """The class that @njit code raises; making an instance of it gives the real exception.

    Compiled code calls :func:`explain` and then raises ``Failure`` without arguments. When the
    thread leaves compiled code, numba makes an instance of ``Failure`` in that thread, twice. The
    instance is, for example, a :class:`~cobre_comm.CollectiveFailed`. ``Failure`` has no arguments,
    because numba leaks half a kilobyte for each exception that has arguments.
    """

    def __new__(cls, *values: Any) -> BaseException:  # type: ignore[misc]  # see the class
        """Return the explained exception."""
        if values:  # CPython may call Failure again, with the exception that Failure has made
            return cast(BaseException, values[0])
        worded = _explained.worded
        if _explained.is_made:  # the second call; keeping the exception would keep frames
            del _explained.worded
        _explained.is_made = True
        return cast(Worded, worded).raised()


_explained = threading.local()


def explain(address: int = 0, interrupt: BaseException | None = None) -> None:
    """Make the exception that this thread raises next, from five words at ``address``.

    The exception is made here, while the call still holds its communicator. When ``Failure``
    becomes an instance, the record of the communicator may have been freed, if nothing else held
    it.

    ``interrupt`` is the exception of a signal handler, if a handler raised before the first line of
    ``explain``.
    """
    _explained.is_made = False
    try:
        _explained.worded = _worded_at(address) if interrupt is None else Worded(interrupt)
    except BaseException as error:  # even a KeyboardInterrupt has to pass through compiled code
        _explained.worded = Worded(error)


def _worded_at(address: int) -> Worded:
    """Return the exception of a failed call of compiled code.

    At the address are five words: the address of the record, the operation, the outcome, the
    address of the call or 0, and the exception that an earlier element of a ``@vectorize`` has
    raised, or 0. On a broken communicator the exception of the earlier element is raised again,
    because it is the cause, and numba would otherwise raise the exception of the last element.
    """
    if not address:
        raise MemoryError("no memory for the number of an address")
    record, operation, outcome, at, pending = _words_at(address, 5)
    if outcome == status.IS_BROKEN and operation != REGION_PART and pending:
        return Worded(ctypes.cast(pending, ctypes.py_object).value)
    kind = _CALLS.get(operation)
    call = kind(*_words_at(at, len(kind._fields))) if kind and at else None
    return put_into_words(record, operation, outcome, call)


class _Lengths(NamedTuple):
    """The lengths in a refused allgather: the length that recv needs, and the length it has."""

    needed: int
    given: int


class _Bounds(NamedTuple):
    """The part of a region that a call of ``part`` asks for."""

    start: int
    stop: int


# By operation: the class for the words that @njit code leaves at an address.
_CALLS: dict[int, type[Any]] = {**DATA_CALLS, ALLGATHER: _Lengths, REGION_PART: _Bounds}


def _words_at(address: int, count: int) -> list[int]:
    return [peek_now(address + WORD_BYTES * number) for number in range(count)]


def put_into_words(address: int, operation: int, outcome: int, call: Any) -> Worded:
    """Return the exception that stands for a status other than OK.

    ``address`` is the address of the communicator's record, and ``operation`` a number in
    ``cobre_kernels.collective.calls``. ``outcome`` is the status of the kernel; for ``part`` it is
    the length of the region. ``call`` has the refused arguments, if the operation has arguments.
    """
    if operation == REGION_PART:  # first, because its outcome is a length, not a status
        return Worded(outside_region(call.start, call.stop, outcome))
    if outcome in _UNUSABLE:
        return Worded(InvalidCommunicator(_UNUSABLE[outcome]))
    comm = COMM.at(address)
    if outcome >= status.FIRST_BREAKING:
        failure = _collective_failure(comm, outcome)
        lost = getattr(failure, "ranks", ())
        they_run = outcome == status.DISAGREE or all(  # ranks that disagree still run
            comm.failures[r].reason in (states.LEFT, states.GAVE_UP) for r in lost
        )
        for rank in lost:
            failure.add_note(tell(comm, rank))
        return Worded(failure, lost, they_run)
    if outcome == status.IS_BROKEN and comm.failure == status.SHRUNK:
        return Worded(InvalidCommunicator(SHRUNK))
    if outcome == status.IS_BROKEN:
        first = _collective_failure(comm, comm.failure)
        cause = str(first) or type(first).__name__
        message = f"this communicator broke in an earlier collective: {cause}"
        return Worded(InvalidCommunicator(message, getattr(first, "ranks", ())))
    if outcome == status.BUSY_ELSEWHERE:
        hint = IN_HANDLER if is_interrupted(comm) else _HINTS[outcome]
        return Worded(InvalidCommunicator(f"{OPERATIONS[operation]}: {hint}"))
    return Worded(_argument_error(comm, operation, outcome, call))


# By status: why a communicator, or an object that it has made, cannot be used.
_UNUSABLE = {
    status.IS_CLOSED: "this communicator is closed; create another one",
    status.IS_FORKED: "this process was forked after the communicator was made, so it is not a "
    "rank of it; create a communicator in each process, or start processes with spawn",
    status.IS_FINALIZED: "MPI has been finalized; close communicators before MPI.Finalize()",
    status.REGION_IS_CLOSED: REGION_IS_CLOSED,
    status.WORK_IS_CLOSED: WORK_IS_CLOSED,
    status.WORK_IS_RESET: WORK_IS_RESET,
}

# By status: the reason why a call was refused.
_HINTS = {
    status.LENGTHS_DIFFER: "send and recv need the same length, at least 1",
    status.SEND_NOT_COUNT: "send.size must be counts[rank]",
    status.WRONG_TABLES: "counts and displs need one entry per rank",
    status.NEGATIVE: "counts and displs must not be negative",
    status.BAD_ROOT: "root is not a rank",
    status.BAD_PHASE: "number must be 0, or what comm.phase_number(name) has returned",
    status.BUSY_ELSEWHERE: "another thread is inside a collective of this communicator; use one "
    "thread at a time, or one communicator per thread",
    status.NO_MEMORY: "no memory",
    status.BLOCKS_OVERLAP: "two blocks of recv overlap; check counts and displs",
    status.BUFFERS_OVERLAP: "send and recv overlap; pass the same array, or separate ones",
    status.UNALIGNED: "an array is not aligned; pass a copy of it",
    status.BAD_OP: f"op must be one of {', '.join(ReduceOp.__members__)} of ReduceOp; complex "
    "numbers have SUM alone, floats all but BAND and BOR, and bool all but SUM and PROD (convert "
    "bool to int64 to count)",
    status.NOT_CONTIGUOUS: "an array is not C-contiguous; pass numpy.ascontiguousarray(...)",
    status.READ_ONLY: "buf is read-only; pass a writable array",
    status.UNFIT: "counts or displs do not fit 64-bit signed integers",
    status.REFUSED: "its arguments are of a wrong type",
}


# By status: the word by which ``cobre-comm explain`` finds the section that says more.
_WORDS = {
    status.NOT_CONTIGUOUS: CONTIGUOUS,
    status.READ_ONLY: OUTPUT,
    status.BAD_OP: OP,
    status.BLOCKS_OVERLAP: COUNTS,
    status.UNFIT: COUNTS,
}


SHRUNK = "shrink has ended this communicator; use the one that shrink returned"
IN_THREAD = "another thread is inside a collective"
IN_HANDLER = (
    "a signal handler called it while its own thread waits in a collective of this communicator; "
    "let the handler set a flag, and the program look at it after the collective"
)


def is_interrupted(comm: View) -> bool:
    """Whether the caller is a signal handler that has interrupted a wait of this communicator.

    Python runs handlers in the main thread alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and bool(comm.stop.interrupted == comm.journal.address)


def _argument_error(comm: View, operation: int, outcome: int, call: Any) -> Exception:
    if operation == ALLGATHER:
        return InvalidBufferSize("allgather", call.needed, call.given, RECV_HINT)
    name, hint = OPERATIONS[operation], _HINTS.get(outcome, f"unexpected status {outcome}")
    if outcome == status.LENGTHS_DIFFER:
        return InvalidBufferSize(name, max(call.send_count, 1), call.recv_count, hint)
    if outcome == status.WRONG_TABLES:
        given = call.counts_len if call.counts_len != comm.size else call.displs_len
        return InvalidBufferSize(name, comm.size, given, hint)
    if outcome in _OF_TABLES:
        return _table_error(comm, name, outcome, call)
    if outcome == status.BAD_ROOT:
        return InvalidRoot(call.root, comm.size)
    if outcome == status.BUFFERS_OVERLAP and operation != ALLREDUCE:
        hint = "send overlaps recv; it may only be exactly its own block of it"
    if outcome == status.NO_MEMORY:
        return MemoryError(f"{name}: {hint}")
    error = ValueError(f"{name}: {hint}")
    return explained(error, _WORDS[outcome]) if outcome in _WORDS else error


_OF_TABLES = (status.SEND_NOT_COUNT, status.NEGATIVE, status.BLOCK_OUTSIDE)


def _table_error(comm: View, name: str, outcome: int, call: Any) -> InvalidBufferSize:
    """Return the error of a wrong number in ``counts`` or ``displs``, which are indexed by rank."""
    counts, displs = (_words_at(table, comm.size) for table in (call.counts, call.displs))
    if outcome == status.SEND_NOT_COUNT:
        return InvalidBufferSize(name, counts[comm.rank], call.send_count, _HINTS[outcome])
    if outcome == status.NEGATIVE:
        return InvalidBufferSize(name, 0, min(counts + displs), _HINTS[outcome])
    ends = [begin + count for begin, count in zip(displs, counts, strict=True)]
    outside = (rank for rank, end in enumerate(ends) if end > call.recv_count)
    rank = next(outside, comm.size - 1)  # none, if another thread has changed the tables
    hint = f"recv has no room for the block of rank {rank}, [{displs[rank]}, {ends[rank]})"
    return InvalidBufferSize(name, ends[rank], call.recv_count, hint)


def _collective_failure(comm: View, outcome: int) -> BaseException:
    if outcome == status.INTERRUPTED:
        return _pending_exception(comm)
    operation = own_call(comm.signature) or unpack_signature(comm.signature)[0]
    if outcome == status.DISAGREE:
        return _disagreement(comm, operation)
    if outcome == status.MPI_FAILED:
        return _mpi_failure(comm, operation)
    if outcome == status.UNSEEN:
        return _unseen_refusal(comm)
    reasons = {r: comm.failures[r].reason for r in range(comm.size)}
    if outcome == status.LOST_PEER:
        lost = {r: reason for r, reason in reasons.items() if reason in _REASONS}
        _follow_an_abort(comm, lost)
        return CollectiveFailed(operation, 0, _loss(comm, lost), lost)
    late = [r for r, reason in reasons.items() if reason != states.PRESENT]
    variable = TIMEOUT_VARIABLES.get(comm.backend) or "the timeout"
    return CollectiveFailed(
        operation,
        0,
        f"{named(late)} did not come within {comm.waited_ns / 1e9:.3g} s; if that is only slow, "
        f"raise {variable} (seconds, 0 for no limit)",
        late,
    )


def _loss(comm: View, lost: dict[int, int]) -> str:
    """Say why ranks are lost, beginning with the ranks that have a known exception."""
    raised = {rank: words for rank in lost if (words := raised_by(comm, rank))}
    gone = {rank: reason for rank, reason in lost.items() if rank not in raised}
    said = [f"{named(ranks)} raised {words}" for ranks, words in alike(raised)]
    said += [f"{named(ranks)} {_REASONS[why][len(ranks) > 1]}" for ranks, why in alike(gone)]
    whom = "it" if len(gone) == 1 else "them"
    return "; ".join(said) + (f", while others waited for {whom}" if gone else "")


def _follow_an_abort(comm: View, lost: Iterable[int]) -> None:
    """End this process if one of the lost ranks has aborted the job."""
    for rank in lost:
        abort = aborting.abort_in(raised_by(comm, rank))
        if abort:
            aborting.follow(abort)


def _unseen_refusal(comm: View) -> CollectiveFailed:
    """Return the failure of a call that was refused at a place where no error can be raised."""
    operation = OPERATIONS.get(comm.signature, "a collective")
    hint = _HINTS.get(comm.refusal, "it was refused")
    message = f"refused in a thread of prange, where numba drops errors: {hint}"
    return CollectiveFailed(operation, 0, message, [comm.rank])


def _mpi_failure(comm: View, operation: str) -> CollectiveFailed:
    """Return the failure that MPI has reported, with the text that MPI gives for it."""
    from mpi4py import MPI  # already loaded, when this communicator was made

    text = MPI.Get_error_string(comm.mpi_error) if MPI.Is_initialized() else "unknown"
    return CollectiveFailed(operation, comm.mpi_error, text)


# By operation: what can differ between the calls of ranks although their signatures are the same.
_DIFFERENCES = {
    ALLGATHERV: " (with different counts, displacements or item sizes)",
    GATHERV: " (the root's counts are not what the ranks send)",
    RESET: " (of which work, to which order or costs)",
}


def _disagreement(comm: View, operation: str) -> CollectiveFailed:
    failures = {r: comm.failures[r] for r in range(comm.size)}
    calls = {r: (f.signature, f.compared, f.count) for r, f in failures.items()}
    # Only the ranks of one node call a fence, so ranks of other nodes may have called nothing.
    calls = {r: call for r, call in calls.items() if call[0]} or calls
    keys = Counter((signature, compared) for signature, compared, _ in calls.values())
    (usual, votes), *others = keys.most_common()
    tied = any(count == votes for _, count in others)
    at_fault = [r for r, call in calls.items() if tied or call[:2] != usual]
    described = {rank: _describe_call(*call) for rank, call in calls.items()}
    as_usual = {words for r, words in described.items() if calls[r][:2] == usual}
    for rank, words in described.items():
        if words in as_usual and calls[rank][:2] != usual:  # only a hash differs
            described[rank] = f"{words} otherwise"
    told = "; ".join(f"{named(ranks)} {what}" for ranks, what in alike(described))
    is_one_signature = len({call[0] for call in calls.values()}) == 1
    hint = _DIFFERENCES.get(usual[0] & 0xFF, "") if is_one_signature else ""
    return CollectiveFailed(operation, 0, f"ranks disagree{hint}: {told}", at_fault)


# By op and dtype: the method that reduces one number with such an allreduce.
_OF_NUMBERS = {
    (op, dtype): f"comm.{op.lower()} of {noun}"
    for op in ("SUM", "MIN", "MAX")
    for dtype, noun in (("int64", "an int"), ("float64", "a float"))
}


def _describe_call(signature: int, compared: int, count: int) -> str:
    operation, dtype, argument = describe(signature)
    number, own = signature & 0xFF, own_call(signature)
    served = f" of {own}" if own not in ("", operation) else ""
    if not dtype:
        # The second word of an exact sum, and the hash of a reset, say nothing to a user.
        has_amount = compared and number not in DATA_CALLS and number != RESET
        return f"called {operation}" + (f" of {compared}" if has_amount else "") + served
    nouns = "element" if count == 1 else "elements"
    amount = f"{compared} bytes" if number == BROADCAST else f"{count} {nouns}"
    if number not in (BROADCAST, ALLREDUCE):
        amount = f"sends {amount}"
    called = f"called {operation}({', '.join(filter(None, [argument, dtype, amount]))})"
    if number == ALLREDUCE and count == 1 and not own and (argument, dtype) in _OF_NUMBERS:
        return f"{called}, as {_OF_NUMBERS[argument, dtype]} does"
    return called + served


def _pending_exception(comm: View) -> BaseException:
    """Return the exception that a signal handler raised in a kernel's wait; keep only its text.

    An exception holds frames, and these frames hold the communicator. The garbage collector does
    not see into records. So a communicator with the exception in its record would never be freed.
    """
    kind = comm.pending_exception
    held = _words_at(kind, 3)  # type, value, traceback
    value = ctypes.cast(held[1], ctypes.py_object).value if held[1] else None
    if not isinstance(value, BaseException):
        return KeyboardInterrupt(*(() if value is None else (value,)))
    words = str(value) or type(value).__name__
    ctypes.pythonapi.Py_IncRef(ctypes.c_void_p(id(words)))
    for word, kept in enumerate((0, id(words), 0)):
        poke_now(kind + WORD_BYTES * word, kept)
    for address in filter(None, held):
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))
    return value
