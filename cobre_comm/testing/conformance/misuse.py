"""Tests of arguments that are wrong."""

import pytest

from cobre_comm.testing.conformance.bodies import misuse
from cobre_comm.testing.conformance.suite import Suite, needs


class MisuseTests(Suite):
    """Arguments that are wrong."""

    @pytest.mark.parametrize("operation", ["allgatherv", "allreduce", "broadcast"])
    def test_wrong_arguments(self, argument_pool, caller, operation):
        argument_pool.run(misuse.wrong_arguments, caller, operation, timeout_s=120)

    def test_arguments_that_only_python_has(self, argument_pool):
        argument_pool.run(misuse.wrong_python_arguments)

    def test_usable_after_each(self, argument_pool, caller):
        argument_pool.run(misuse.usable_after_each, caller)

    def test_fields(self, argument_pool, caller):
        argument_pool.run(misuse.fields_of_argument_errors, caller)

    @needs("njit")
    def test_try_except_in_compiled_code(self, argument_pool):
        argument_pool.run(misuse.try_except_in_compiled_code, fresh=True)

    def test_closed(self, argument_pool, caller):
        told = set(argument_pool.run(misuse.closed, caller, fresh=True)[0])
        # In @njit code over local, barrier and broadcast compile to nothing.
        is_local = argument_pool.backend == "local"
        nothing = {"barrier", "broadcast", "allreduce"} if is_local else set()
        assert told | (nothing if caller == "njit" else set()) == {
            "barrier", "broadcast", "allreduce", "allgatherv",
        }  # fmt: skip
