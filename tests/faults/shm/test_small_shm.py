"""A container's /dev/shm: 64 MiB, or next to nothing. Never a bus error."""

import sys

import pytest

from tests.faults.shm.private_shm import in_private_shm
from tests.grid import slow

pytestmark = pytest.mark.usefixtures("private_mounts")


def run(shm_size, body, ranks, *buffer_bytes):
    module = [sys.executable, "-m", "tests.faults.shm.small_shm_bodies"]
    done = in_private_shm(shm_size, [*module, body, str(ranks), *buffer_bytes])
    *lines, left = done.stdout.splitlines() or [""]
    assert left == "LEFT []", done.stderr
    assert len(lines) == ranks, done.stderr
    return lines


@pytest.mark.parametrize("ranks", [2, slow(16)])
def test_default_container(ranks):
    assert run("64m", "any_size", ranks) == ["OK"] * ranks


@pytest.mark.parametrize("ranks", [1, slow(4)])
def test_one_mebibyte(ranks):
    lines = run("1m", "hardly_any", ranks)
    if lines != ["OK"] * ranks:
        assert lines[0].startswith("InitializationFailed")
        assert "bytes" in lines[0]
        assert all(line.startswith("InitializationFailed") for line in lines)


@pytest.mark.parametrize("ranks", [slow(1), 2, slow(4)])
def test_one_mebibyte_with_small_buffers(ranks):
    """What InitializationFailed leads the user to."""
    assert run("1m", "hardly_any", ranks, "8192") == ["OK"] * ranks
