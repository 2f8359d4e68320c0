"""A region above the memory limit of a container or batch job is refused, and no rank is killed."""

import contextlib
import os
import pathlib
import secrets
import sys

import numpy as np
import pytest

from cobre_comm import AllocationFailed, create_communicator
from cobre_comm.system import cgroups
from cobre_comm.testing import run_ranks_outcomes
from tests.grid import slow

MIB = 2**20
LIMIT, REGION = 400 * MIB, 600 * MIB
STAT = "anon 7\ninactive_file 20\nactive_file 3\nslab_reclaimable 1\n"
STAT_V1 = "inactive_file 9\ntotal_inactive_file 20\ntotal_active_file 4\n"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/", {}, sys.maxsize),
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "100"}, 100 - 50 + 24),
        ("0::/a", {"a/memory.max": "90", "memory.max": "70"}, 70 - 50 + 24),
        ("0::/unseen", {"memory.max": "20"}, 0),
        ("4:memory:/a\n0::/", {"memory/a/memory.limit_in_bytes": "100"}, 100 - 50 + 24),
        ("4:memory:/a/b\n0::/", {"memory/memory.limit_in_bytes": "80"}, 80 - 50 + 24),
        ("4:cpu:/a\n0::/", {"memory/a/memory.limit_in_bytes": "100"}, sys.maxsize),
    ],
)
def test_what_groups_leave(own, files, expected, monkeypatch, tmp_path):
    for name, limit in files.items():
        folder, is_old = (tmp_path / name).parent, name.endswith("limit_in_bytes")
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit}\n")
        (folder / ("memory.usage_in_bytes" if is_old else "memory.current")).write_text("50\n")
        (folder / "memory.stat").write_text(STAT_V1 if is_old else STAT)
    (tmp_path / "own").write_text(f"{own}\n")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "own")
    assert cgroups.memory_left() == expected


@contextlib.contextmanager
def group_of_memory():
    """Make a control group with LIMIT below this process's group; give the new group's folder."""
    name = f"cobre-{secrets.token_hex(6)}"
    for parent in cgroups.groups("memory"):
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            limits = [folder / file for file in ("memory.max", "memory.limit_in_bytes")]
            for limit in filter(pathlib.Path.exists, limits):
                limit.write_text(str(LIMIT))
                yield folder
                return
        finally:
            with contextlib.suppress(OSError):  # a process of the group may end only now
                folder.rmdir()
    pytest.skip("no group of memory can be made here")


def exceed(_, folder):
    """Ask, on all ranks of the group, for more memory than the group may have; then for less."""
    pathlib.Path(folder, "cgroup.procs").write_text(str(os.getpid()))
    with create_communicator() as comm:
        with pytest.raises(AllocationFailed) as failed:
            comm.create_shared_region(REGION, np.uint8)
        region = comm.create_shared_region(LIMIT // 8, np.uint8)
        region.part(0, region.count)[comm.rank :: comm.size] = 1
        region.fence()
        assert region.as_slice().min() == 1
    return failed.value.requested_bytes, failed.value.message


@pytest.mark.parametrize("backend", ["shm", slow("tcp")])
def test_a_region_above_the_limit_is_refused(backend):
    with group_of_memory() as folder:
        outcomes = run_ranks_outcomes(backend, 2, exceed, str(folder), connect=False)
        assert all(outcome.ok for outcome in outcomes), outcomes
        for outcome in outcomes:
            requested_bytes, message = outcome.value
            assert requested_bytes == REGION
            assert "the limit of memory that holds this process leaves" in message
