"""The quick ones of the places where users run ranks; `make places` tries the others."""

import pytest

from places.frame import ROOT
from tests.command import python

LIMIT_S = 900


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", ["torchrun", "impi", "mpi-sppy"])
def test_all_rows_of_a_place_are_good(name):
    done = python("-m", "places", name, code=None, within_s=LIMIT_S, cwd=ROOT)
    if done.returncode == 3:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
