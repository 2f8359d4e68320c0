"""A wait for what another rank or process does; every such wait ends."""

import time


def wait_until(holds, limit_s=60.0):
    """Wait until a condition holds; return its value, which is false if the time has passed."""
    until = time.monotonic() + limit_s
    while not (found := holds()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def await_all(folder, rank, size):
    """Wait until all ranks have arrived here, outside of any collective."""
    (folder / f"here-{rank}").touch()
    assert wait_until(lambda: len(list(folder.glob("here-*"))) == size)
