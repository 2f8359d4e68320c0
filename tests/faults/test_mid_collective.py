from cobre_comm.testing.conformance import MidCollectiveTests
from tests.grid import OUR_GRID


class TestMidCollective(MidCollectiveTests):
    grid = OUR_GRID
