import os
import pathlib
import time

import psutil
import pytest


def names():
    folder = pathlib.Path("/dev/shm")
    return {path.name for path in folder.glob(f"cobre-{os.getuid()}-*")}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No name in shared memory, no child, no zombie; other jobs' names come and go."""
    before = names()
    children = set(psutil.Process().children(recursive=True))
    yield
    deadline = time.monotonic() + 5
    while (left := names() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()
    new = set(psutil.Process().children(recursive=True)) - children
    assert [p for p in new if "resource_tracker" not in " ".join(p.cmdline())] == []
