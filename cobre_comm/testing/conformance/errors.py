"""Tests of the errors that ranks meet: their fields, on all ranks, and through pickle."""

import pickle

import pytest

from cobre_comm import (
    AllocationFailed,
    CollectiveFailed,
    CommError,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
)
from cobre_comm.testing.conformance.bodies import errors
from cobre_comm.testing.conformance.suite import Suite, needs

TIMEOUT_S = 20
FIELDS = {
    "InvalidRoot": (InvalidRoot, {"root": 1000, "size": 2}),
    "InvalidBufferSize": (InvalidBufferSize, {"operation": "allreduce"}),
    "InvalidCommunicator": (InvalidCommunicator, {}),
    "CollectiveFailed": (CollectiveFailed, {"mpi_error_code": 0, "operation": "allreduce"}),
}


class ErrorTests(Suite):
    """Every error of a communicator, its fields, and what the other ranks then meet."""

    @pytest.mark.parametrize("name", list(FIELDS))
    def test_fields_and_pickle(self, pools, backend, caller, name):
        cls, fields = FIELDS[name]
        env = self.grid.timeout_of(TIMEOUT_S)
        for rank in pools.get(backend, 2).run(errors.raise_one, caller, name, env=env, fresh=True):
            check_pickled(rank, cls, fields)

    @needs("regions")
    def test_allocation_failed(self, pools, backend):
        for rank in pools.get(backend, 2).run(errors.raise_allocation_failed, 2**58, fresh=True):
            check_pickled(rank, AllocationFailed, {"requested_bytes": 2**61})

    @needs("disagreement")
    @pytest.mark.parametrize("name", errors.REFUSED)
    def test_others_do_not_hang_for_a_refused_argument(self, pools, backend, caller, name):
        """One rank's call is refused before it communicates; it goes on, or it leaves."""
        env = self.grid.small_and_bounded(TIMEOUT_S)
        pool = pools.get(backend, 3)
        for then in errors.THEN:
            values = pool.run(errors.refused_on_one, caller, name, then, env=env, fresh=True)
            assert type(values[1]).__name__ == name, values[1]
            for error in (values[0], values[2]):
                assert isinstance(error, CollectiveFailed), repr(error)
                assert error.ranks == (1,)

    @needs("regions", "disagreement")
    def test_others_do_not_hang_for_a_refused_region(self, pools, backend):
        env = self.grid.small_and_bounded(TIMEOUT_S)
        values = pools.get(backend, 3).run(errors.refused_region_on_one, env=env, fresh=True)
        assert isinstance(values[1], ValueError)
        assert all(isinstance(values[rank], CollectiveFailed) for rank in (0, 2)), values


def check_pickled(told, cls, fields):
    """Compare what a rank caught with what it pickled, which came through once more."""
    caught, attributes, text = told
    assert type(caught) is cls
    assert isinstance(caught, CommError)
    assert {name: getattr(caught, name) for name in fields} == fields
    assert vars(caught) == attributes
    assert str(caught) == text != ""
    again = pickle.loads(pickle.dumps(caught))
    assert (type(again), vars(again), str(again)) == (cls, attributes, text)
