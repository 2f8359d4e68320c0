import pytest

from tests.conformance.bodies import misuse
from tests.grid import EVERY_RANK_ALONE, grid

SOME = grid(
    [("local", 1), ("shm", 1), ("shm", 3), ("tcp", 1), ("tcp", 3), ("mpi-mpich:0,1", 3)],
    [("mpi-openmpi", 1), ("mpi-mpich", 3), (f"mpi-openmpi:{EVERY_RANK_ALONE}", 3)],
)


@pytest.fixture(params=SOME)
def some(request, pools):
    return pools.get(*request.param)


@pytest.mark.parametrize("operation", ["allgatherv", "allreduce", "broadcast"])
def test_wrong_arguments(some, caller, operation):
    some.run(misuse.wrong_arguments, caller, operation, timeout_s=120)


def test_arguments_that_only_python_has(some):
    some.run(misuse.wrong_python_arguments)


def test_usable_after_each(some, caller):
    some.run(misuse.usable_after_each, caller)


def test_fields(some, caller):
    some.run(misuse.fields_of_argument_errors, caller)


def test_try_except_in_compiled_code(some):
    some.run(misuse.try_except_in_compiled_code, fresh=True)


def test_closed(some, caller):
    told = set(some.run(misuse.closed, caller, fresh=True)[0])
    # In @njit code over local, barrier and broadcast compile to nothing.
    nothing = {"barrier", "broadcast", "allreduce"} if some.backend == "local" else set()
    assert told | (nothing if caller == "njit" else set()) == {
        "barrier", "broadcast", "allreduce", "allgatherv",
    }  # fmt: skip
