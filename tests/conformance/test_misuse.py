from cobre_comm.testing.conformance import MisuseTests
from tests.grid import OUR_GRID


class TestMisuse(MisuseTests):
    grid = OUR_GRID
