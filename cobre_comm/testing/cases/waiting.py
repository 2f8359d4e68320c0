"""Waits for a fact that another rank or process brings about; every such wait has a limit."""

import time


def wait_until(holds, limit_s=60.0):
    """Wait until a condition holds or the time is over; return the condition's last value."""
    until = time.monotonic() + limit_s
    while not (found := holds()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def await_all(folder, rank, size):
    """Wait until all ranks have arrived here, outside of any collective."""
    (folder / f"here-{rank}").touch()
    assert wait_until(lambda: len(list(folder.glob("here-*"))) == size)
