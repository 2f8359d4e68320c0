from cobre_comm.testing.conformance import AllgathervTests
from tests.grid import OUR_GRID


class TestAllgatherv(AllgathervTests):
    grid = OUR_GRID
