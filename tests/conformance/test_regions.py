from cobre_comm.testing.conformance import RegionTests
from tests.grid import OUR_GRID


class TestRegion(RegionTests):
    grid = OUR_GRID
