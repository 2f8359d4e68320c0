"""The table of cases on our backends."""

from cobre_comm.testing.conformance import ConformanceSuite
from tests.grid import OUR_GRID


class TestTable(ConformanceSuite):
    grid = OUR_GRID
