"""What the survivors of a lost or late rank must have met."""

from __future__ import annotations

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.faults.calling import OPERATIONS

# A loss is seen within a second on a quiet machine; a loaded one may take longer, but never as long
# as the limit of a wait for a live rank, which is a minute.
SLACK_S = 20.0


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
