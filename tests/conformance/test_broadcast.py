from cobre_comm.testing.conformance import BroadcastTests
from tests.grid import OUR_GRID


class TestBroadcast(BroadcastTests):
    grid = OUR_GRID
