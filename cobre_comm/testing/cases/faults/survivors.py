"""Checks of the errors that survivors of a lost or late rank get."""

from __future__ import annotations

import re

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.faults.calling import are_refused

# On a quiet machine a loss is seen within a second. A loaded machine may take longer, but never as
# long as a wait for a live rank may last, which is a minute.
SLACK_S = 20.0


def check_later(later, took, cause):
    """Check that each later collective failed at once, with an error that names the first cause."""
    assert are_refused(later, cause), later
    assert took < SLACK_S


def ranks_in(text):
    """Return the ranks that a text names, as in ``rank 3`` or ``ranks 0-2 and 5``."""
    ends = [
        run.partition("-")
        for runs in re.findall(r"\brank \d+|\branks [\d-]+(?:(?:, [\d-]+)* and [\d-]+)?", text)
        for run in re.findall(r"[\d-]+", runs)
    ]
    return {n for first, _, last in ends for n in range(int(first), int(last or first) + 1)}


def check_timeout(caught, variable):
    """Check that the error names its absent ranks, and the variable that raises the limit."""
    assert isinstance(caught, CollectiveFailed)
    assert ranks_in(str(caught)) >= {*caught.ranks}
    assert variable in str(caught)


def check_calls(caught, ranks):
    """Check that the notes of the error have one line for each of these ranks: its last calls."""
    lines = [note for note in caught.__notes__ if "calls" in note]
    assert [line.split(",")[0].split(":")[0] for line in lines] == [f"rank {r}" for r in ranks]
    assert all(" ago" in line for line in lines), lines
