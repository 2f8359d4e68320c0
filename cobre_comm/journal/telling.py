"""Sentences about a rank's last calls, from its journal.

When a collective fails, the error of each rank has such a line about each rank that is lost or
late, or that has called something else.
"""

from __future__ import annotations

import time

from cobre_kernels.collective.seeing.journal import ANOTHER_NODE, CLOSED_WELL
from cobre_kernels.machine.record import View

from cobre_comm.journal.copied import Journal, PastCall, raised_in, read
from cobre_comm.journal.finding import journals_in
from cobre_comm.journal.shown import shared_files

TOLD_CALLS = 3
CLOCKS_AGREE_NS = 10**9
_BEGAN_NS = time.monotonic_ns()  # older than any call of a rank that this process has met

_telling: list[int] = []  # the ranks of which a thread reads a journal now


def is_telling() -> bool:
    """Whether a thread may be reading a journal."""
    return bool(_telling)


def tell(comm: View, rank: int) -> str:
    """Return a line on the last calls of a rank, and how long ago they were.

    ``comm`` is the record of this rank's communicator, and ``rank`` any rank of it.
    """
    journal = _read(comm, rank)
    if journal is None:
        return _tell_of_other(comm, rank)
    return last_calls(journal) + _elsewhere(journal)


def tell_call(comm: View, rank: int) -> str:
    """Return only the last call of a rank; "" if its journal cannot be read."""
    journal = _read(comm, rank)
    return str(journal.calls[-1]) if journal and journal.calls else ""


def raised_by(comm: View, rank: int) -> str:
    """Return type and first line of the exception that has ended a rank; "" if none is known.

    The exception is in the rank's own journal, if that can be read. Otherwise it may be in the
    journal of this rank, or of a third rank.
    """
    _telling.append(rank)
    try:
        ranks = [rank, comm.rank, *range(comm.size)]
        seen = filter(None, dict.fromkeys(comm.journals[each] for each in ranks))
        return next(filter(None, (raised_in(address, rank) for address in seen)), "")
    finally:
        _telling.remove(rank)


def _read(comm: View, rank: int) -> Journal | None:
    _telling.append(rank)  # before the address is read, because of Journals.leave_segment
    try:
        address = comm.journals[rank]
        return read(address) if address else None
    finally:
        _telling.remove(rank)


def last_calls(journal: Journal) -> str:
    """Return a line on the last calls in a journal, the latest first."""
    if not journal.calls:
        return f"rank {journal.rank} has called nothing of this communicator"
    calls = journal.calls[-TOLD_CALLS:][::-1]
    told = [_tell(call, journal) for call in calls]
    if journal.ended == CLOSED_WELL:
        told.insert(0, "closed its communicator")
    return f"rank {journal.rank}, its last calls: {'; '.join(told)}"


def _elsewhere(journal: Journal) -> str:
    """Say in which collective of another communicator a rank is, if no call here was later."""
    since = max((call.left_ns or call.entered_ns for call in journal.calls), default=0)
    for path in shared_files(journal.pid):
        for other in journals_in(path, journal.pid):
            call = other.calls[-1] if other.calls else None
            if call is None or other.communicator == journal.communicator:
                continue
            if call.left_ns is None and call.entered_ns > since:
                which = f"communicator {other.communicator}, of {other.size} ranks"
                return f"; in {which}: {_tell(call, other)}"
    return ""


def _tell(call: PastCall, journal: Journal) -> str:
    if call.left_ns is not None:
        return f"{call} returned {_age(journal, call.left_ns)}"
    waits = ""
    if journal.awaited is not None and call is journal.calls[-1]:
        node = journal.awaited == ANOTHER_NODE
        waits = f" and waited for {'another node' if node else f'rank {journal.awaited}'}"
    return f"{call} entered {_age(journal, call.entered_ns)}{waits}"


def _age(journal: Journal, time_ns: int) -> str:
    if not -CLOCKS_AGREE_NS < time_ns - _BEGAN_NS < journal.read_ns - _BEGAN_NS + CLOCKS_AGREE_NS:
        return "at a time of its own clock, as that process has another time namespace"
    return f"{max(journal.read_ns - time_ns, 0) / 1e9:.3g} s ago"


def _tell_of_other(comm: View, rank: int) -> str:
    """Describe a rank that has no readable journal, by the last call that our own rank has left.

    A collective ends when all ranks have entered it, so the described rank has entered this call
    too. A fence does not count, because only the ranks of one node enter a fence.
    """
    own = _read(comm, comm.rank)
    done = [c for c in own.calls if c.left_ns is not None and c.operation != "fence"] if own else []
    if own is None or not done:
        return f"rank {rank}: its calls cannot be read here"
    return (
        f"rank {rank}: its calls cannot be read here; it had entered {done[-1]}, which returned "
        f"{_age(own, done[-1].left_ns or 0)}"
    )
