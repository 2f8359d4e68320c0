from cobre_comm.testing.conformance import BarrierTests
from tests.grid import OUR_GRID


class TestBarrier(BarrierTests):
    grid = OUR_GRID
