import pytest

from tests.faults.shm.private_shm import refusal


@pytest.fixture
def private_mounts():
    if refusal():
        pytest.skip(f"no private mount namespace here: {refusal()}")
