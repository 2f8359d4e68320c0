"""Runs the tests of this folder."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
FILES = [str(HERE / name) for name in ("over_mpi.py", "protocol.py", "rounds.py")]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.kernels.mpi.library"]

if __name__ == "__main__":
    sys.exit(pytest.main([*OPTIONS, *FILES]))
