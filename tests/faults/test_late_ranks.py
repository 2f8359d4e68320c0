"""A rank that does not come within the limit is named, with the variable that raises the limit."""

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import BackendName
from tests.faults import bodies
from tests.faults.test_lost_ranks import check_later
from tests.grid import timeout_of

ONE_SECOND = timeout_of(1)


def check_timeout(backend, caught, absent):
    assert isinstance(caught, CollectiveFailed)
    assert caught.ranks == tuple(absent)
    assert all(f"rank {rank}" in str(caught) for rank in absent)
    assert f"COBRE_{BackendName.parse(backend).kind.upper()}_TIMEOUT_SECS" in str(caught)


@pytest.mark.parametrize("operation", bodies.OPERATIONS)
def test_timeout(pools, backend, caller, operation):
    values = pools.get(backend, 4).run(
        bodies.late, caller, operation, (1, 3), 2.2, env=ONE_SECOND, fresh=True
    )
    for rank in (0, 2):
        caught, waited_s, later, took = values[rank]
        check_timeout(backend, caught, (1, 3))
        assert caught.operation == operation
        assert 0.9 < waited_s < 1.9
        check_later(later, took, str(caught))


def test_no_limit(pools, backend):
    pools.get(backend, 2).run(bodies.no_limit, 1.5, env=timeout_of(0), fresh=True)


def test_stopped_rank(pools, backend, caller):
    values = pools.get(backend, 3).run(bodies.stopped, caller, 1, env=ONE_SECOND, fresh=True)
    for rank in (0, 2):
        caught, _, later, took = values[rank]
        check_timeout(backend, caught, (1,))
        check_later(later, took, str(caught))
