"""The ranks of the table of cases."""

import pytest

from tests.conformance.forked_pools import ForkedPools


@pytest.fixture(scope="session")
def pools():
    made = ForkedPools()
    yield made
    made.close()
