from cobre_comm.testing.conformance import SequenceTests
from tests.grid import OUR_GRID


class TestSequence(SequenceTests):
    grid = OUR_GRID
