"""A rank that does not come within the limit is named, with the variable that raises the limit."""

import pytest

from cobre_comm.testing.conformance.bodies import lost
from cobre_comm.testing.conformance.checks import check_later, check_timeout
from cobre_comm.testing.conformance.suite import Suite, needs


class LateRankTests(Suite):
    """A rank that does not come within the limit."""

    @needs("timeouts")
    @pytest.mark.parametrize("operation", lost.OPERATIONS)
    def test_timeout(self, pools, backend, caller, operation):
        values = pools.get(backend, 4).run(
            lost.late, caller, operation, (1, 3), 2.2, env=self.grid.timeout_of(1), fresh=True
        )
        for rank in (0, 2):
            caught, waited_s, later, took = values[rank]
            check_timeout(caught, (1, 3), self.grid.timeout_variable(backend))
            assert caught.operation == operation
            assert 0.9 < waited_s < 1.9
            check_later(later, took, str(caught))

    @needs("timeouts")
    def test_no_limit(self, pools, backend):
        pools.get(backend, 2).run(lost.no_limit, 1.5, env=self.grid.timeout_of(0), fresh=True)

    @needs("timeouts")
    def test_stopped_rank(self, pools, backend, caller):
        values = pools.get(backend, 3).run(
            lost.stopped, caller, 1, env=self.grid.timeout_of(1), fresh=True
        )
        for rank in (0, 2):
            caught, _, later, took = values[rank]
            check_timeout(caught, (1,), self.grid.timeout_variable(backend))
            check_later(later, took, str(caught))
