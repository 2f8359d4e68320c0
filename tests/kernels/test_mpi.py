"""A leader over an MPI that the test imitates, with compiled kernels and without compilation."""

import pytest

from tests.grid import slow
from tests.kernels import programs


@pytest.mark.parametrize("how", [{}, slow({"NUMBA_DISABLE_JIT": "1"})], ids=str)
def test_leader_over_the_mpi_of_a_test(how):
    programs.output_of("mpi", **how)
