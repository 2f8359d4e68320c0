from cobre_comm.testing.conformance import PropertyTests
from tests.grid import OUR_GRID


class TestProperty(PropertyTests):
    grid = OUR_GRID
