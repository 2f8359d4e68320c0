"""A region is made on all ranks or on none, and nothing is left under any name."""

import os
import sys

import pytest

from tests.faults.shm.private_shm import in_private_shm
from tests.grid import slow

pytestmark = pytest.mark.usefixtures("private_mounts")


@pytest.mark.parametrize(
    "act",
    [
        "kills handed-over 5",
        slow("kills handed-over 1000"),
        "kills by-name 5",
        slow("kills by-name 1000"),
        slow("interrupts"),
        "failures",
        "other_user",
        "other_pid_namespace",
    ],
)
def test_region(act):
    if os.geteuid() != 0 and act.startswith("other"):
        pytest.skip("only root can be another user, or in another PID namespace")
    words = [word.replace("-", " ") for word in act.split(" ")]
    module = [sys.executable, "-m", "tests.faults.shm.region_bodies"]
    done = in_private_shm("64m", [*module, *words])
    assert done.stdout.splitlines()[-1:] == ["DONE"], done.stderr
