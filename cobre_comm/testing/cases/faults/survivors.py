"""What the survivors of a lost or late rank must have met."""

from __future__ import annotations

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed
from cobre_comm.testing.cases.faults.calling import OPERATIONS

# A loss is seen within a second on a quiet machine; a loaded one may take longer, but never as long
# as the limit of a wait for a live rank, which is a minute.
SLACK_S = 20.0


def check_survivors(outcomes, lost, gone_at, operation):
    """All others name the lost rank in time, and every later collective names the cause."""
    if any(outcome.timed_out for outcome in outcomes):
        raise RanksFailed(outcomes)
    for outcome in outcomes:
        if outcome.rank in lost:
            continue
        caught, at, later, took = value_of(outcomes, outcome.rank)
        assert isinstance(caught, CollectiveFailed), caught
        assert caught.operation == operation
        assert set(lost) <= set(caught.ranks)
        assert all(f"rank {rank}" in str(caught) for rank in lost)
        assert caught.mpi_error_code == 0
        if gone_at is not None:
            assert at - gone_at < SLACK_S
        check_later(later, took, str(caught))


def value_of(outcomes, rank):
    """Return what a survivor returned; show all ranks if it did not."""
    if not outcomes[rank].ok:
        raise RanksFailed(outcomes)
    return outcomes[rank].value


def check_later(later, took, cause):
    """Each later collective failed at once, and named the first cause."""
    assert len(later) == len(OPERATIONS)
    assert all(cause in text for text in later), later
    assert took < SLACK_S


def check_timeout(caught, absent, variable):
    """The error names the ranks that did not come, and the variable that raises the limit."""
    assert isinstance(caught, CollectiveFailed)
    assert caught.ranks == tuple(absent)
    assert all(f"rank {rank}" in str(caught) for rank in absent)
    assert variable in str(caught)
