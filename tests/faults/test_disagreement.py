from cobre_comm.testing.conformance import DisagreementTests
from tests.grid import OUR_GRID


class TestDisagreement(DisagreementTests):
    grid = OUR_GRID
