"""The quick ones of the places where users run; the others are `make places`."""

import subprocess
import sys

import pytest

from places.frame import ROOT

LIMIT_S = 900


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", ["torchrun", "impi"])
def test_all_rows_of_a_place_are_good(name):
    command = [sys.executable, "-m", "places", name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode == 3:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
