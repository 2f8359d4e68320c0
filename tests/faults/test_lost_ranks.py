from cobre_comm.testing.conformance import LostRankTests
from tests.grid import OUR_GRID


class TestLostRank(LostRankTests):
    grid = OUR_GRID
