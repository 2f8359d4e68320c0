from cobre_comm.testing.conformance import AllreduceTests
from tests.grid import OUR_GRID


class TestAllreduce(AllreduceTests):
    grid = OUR_GRID
