from cobre_comm.testing.conformance import RankSizeTests
from tests.grid import OUR_GRID


class TestRankSize(RankSizeTests):
    grid = OUR_GRID
