"""If a fault's signal is late, as on a busy machine, the rank works until the signal arrives."""

import pytest

from cobre_comm.testing.cases.faults import struck
from cobre_comm.testing.cases.faults.fault import Fault
from tests import forked

LATE_S = 0.3  # longer than the rank needs for four steps


@pytest.mark.parametrize("kind", ["signals", "fork_in_handler", "fork_of_libc_in_handler"])
def test_ranks_work_until_the_handler_has_run(kind, tmp_path):
    fault = Fault(kind, 0, 2, caller="python", delay_s=LATE_S, lasts_s=0.0)
    outcomes = forked.ranks("shm", 2, struck.struck, "python", fault, str(tmp_path))
    struck.check(fault, outcomes)
    account = outcomes[0].value
    assert account["closed"] > account["struck"]
