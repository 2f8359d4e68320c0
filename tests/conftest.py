"""What test functions share; the classes of the suite have these from their grid."""

import pytest

from tests.grid import OUR_GRID, skip_unless_here

pytest_plugins = ["cobre_comm.testing.plugin"]


@pytest.fixture(params=OUR_GRID.backends)
def backend(request):
    return skip_unless_here(request.param)


@pytest.fixture(params=OUR_GRID.callers)
def caller(request):
    return request.param
