"""Tests import the example's modules by path, as the scripts of the example do."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sddp"
for folder in (EXAMPLE, Path(__file__).resolve().parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture(scope="package")
def cases():
    """Return the folder of the example's case files."""
    return EXAMPLE / "cases"


@pytest.fixture(scope="package")
def comm():
    """Return a communicator of one rank."""
    from cobre_comm import BackendKind, create_communicator

    with create_communicator(BackendKind.LOCAL) as communicator:
        yield communicator
