"""All ranks make a region or none does, and no file is left under any name.

The ranks are forked from a process that has loaded the kernels.
"""

import contextlib
import ctypes
import os
import pathlib
import resource
import secrets
import signal
from unittest import mock

import pytest
from cobre_kernels.machine.code import library

from cobre_comm import (
    CollectiveFailed,
    InitializationFailed,
    InvalidCommunicator,
    LocalBackend,
    ShmBackend,
    ShmConfig,
)
from cobre_comm.backends.shm import nameless, offer
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import met
from tests.faults.odd import bytes_of_addresses, limited, no_descriptor_left
from tests.forked import fork, in_private_shm, outcome, struck_at
from tests.grid import slow

SHM_FOLDER = pathlib.Path("/dev/shm")
REGION_BYTES = 2**20
OTHER_USERS = 65501, 65502
CLONE_NEWPID = 0x20000000


def ranks(size, body, *args, before=lambda rank: None, name=""):
    """Run ``body(comm, *args)`` on forked ranks; return the value, error or signal of each rank."""
    config = {"name": name or f"/{secrets.token_hex(6)}", "size": size, "timeout_s": 20.0}

    def be(rank):
        with ShmBackend(ShmConfig(rank=rank, **config)) as comm:
            return body(comm, *args)

    started = []
    for rank in range(size):
        before(rank)
        started.append(fork(be, rank))
    return [outcome(*each) for each in started]


def make_region(comm, way):
    """Make a region and use it; ranks open its file by process and descriptor, or by name."""
    if way == "by name" and comm.rank == comm.size - 1:
        offer.PROCESSES = pathlib.Path("/nowhere")
    with comm.create_shared_region(REGION_BYTES, "u1") as region:
        region.part(comm.rank, comm.rank + 1)[:] = comm.rank + 1
        region.fence()
        return region.as_slice()[: comm.size].tolist()


def killed_at(comm, way, victim, moment):
    """Kill one rank at its n-th call while it makes a region; return lost ranks, or call count."""
    with struck_at(moment if comm.rank == victim else None, signal.SIGKILL) as calls:
        try:
            make_region(comm, way)
        except CollectiveFailed as error:
            return error.ranks
    return len(calls)


def kills(way, moments):
    """Kill each of two ranks at many moments while they make a region; no file may be left."""
    for victim in (0, 1):
        calls = ranks(2, killed_at, way, victim, 0)[victim]
        assert calls > 40, calls
        for moment in range(1, calls, max(1, calls // int(moments))):
            outcomes = ranks(2, killed_at, way, victim, moment)
            assert outcomes[victim] == -signal.SIGKILL, (moment, outcomes)
            assert outcomes[1 - victim] in ((victim,), 0), (moment, outcomes)
            assert not any(SHM_FOLDER.iterdir()), (victim, moment)


def interrupted_at(comm, victim, moment):
    """Interrupt one rank at its n-th call while it makes a region; return how many calls it made.

    Then both ranks call a barrier, which raises an error on a rank that has given up.
    """
    made = 0
    with struck_at(moment if comm.rank == victim else None, signal.SIGINT) as calls:
        try:
            region = comm.create_shared_region(REGION_BYTES, "u1")
            made = len(calls)
            region.close()
        except KeyboardInterrupt:
            assert comm.rank == victim
    comm.barrier()
    return made


def interrupts():
    """Interrupt each of two ranks at many moments of making a region; the other learns of it."""
    for victim in (0, 1):
        calls = ranks(2, interrupted_at, victim, 0)[victim]
        assert calls > 40, calls
        # At earlier calls the arguments are checked; at later calls all ranks have the region.
        moments = range(calls // 4, calls - 10, 7)
        for moment in moments:
            outcomes = ranks(2, interrupted_at, victim, moment)
            assert isinstance(outcomes[victim], InvalidCommunicator), (moment, outcomes)
            assert isinstance(outcomes[1 - victim], CollectiveFailed), (moment, outcomes)
            assert outcomes[1 - victim].ranks == (victim,), (moment, outcomes)
            assert not any(SHM_FOLDER.iterdir()), (victim, moment)


def fails_on(comm, way, victim, fault):
    """Let one rank fail to make a region; then all ranks continue. Return this rank's error."""
    with FAULTS[fault]() if comm.rank == victim else contextlib.nullcontext():
        caught = met(make_region, comm, way)
    four_in_a_row(comm, "python")
    assert make_region(comm, way) == [1, 2, 3]
    return caught


def no_addresses():
    return limited(resource.RLIMIT_AS, bytes_of_addresses(REGION_BYTES // 2))


@contextlib.contextmanager
def no_permission():
    """Let a rank fail as if it might neither open nor make files of a region."""
    refuse, segments = mock.Mock(side_effect=PermissionError(13, "denied")), nameless.segments
    with (
        mock.patch.object(os, "open", refuse),
        mock.patch.object(segments, "create_named", refuse),
        mock.patch.object(segments, "open_named", refuse),
    ):
        yield


FAULTS = {
    "descriptors": no_descriptor_left,
    "addresses": no_addresses,
    "permission": no_permission,
}


def failures():
    """A rank fails in each way: all ranks get the same error, and continue."""
    for fault in FAULTS:
        for victim in (0, 2):
            for way in ("handed over", "by name"):
                outcomes = ranks(3, fails_on, way, victim, fault)
                texts = {f"{type(each).__name__}: {each}" for each in outcomes}
                assert len(texts) == 1, (fault, victim, way, outcomes)
                assert f"rank {victim}: " in texts.pop(), (fault, victim, way, outcomes)
                assert {each.requested_bytes for each in outcomes} == {REGION_BYTES}
                assert not any(SHM_FOLDER.iterdir())


def other_user():
    """Ranks refuse another user's file, and share regions if descriptors are hidden from them."""
    owner, user = OTHER_USERS
    path = SHM_FOLDER / "squatted"
    path.touch(0o600)
    os.chown(path, owner, owner)

    def as_user(act):
        os.setgid(user)
        os.setuid(user)
        return act()

    errors = outcome(*fork(as_user, lambda: ranks(2, make_region, "", name="/squatted")))
    for error in errors:
        assert isinstance(error, InitializationFailed), error
        assert f"uid {owner}" in str(error), error
    path.unlink()
    # A process that has changed its user hides its descriptors from other processes.
    found = outcome(*fork(as_user, lambda: ranks(2, make_by_name)))
    assert found == [[1, 2]] * 2, found
    assert not any(SHM_FOLDER.iterdir())


def other_pid_namespace():
    """Rank 0 is process 1 of another PID namespace; for rank 1, process 1 is another process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def before(rank):
        if rank == 0 and libc.unshare(CLONE_NEWPID):
            raise OSError(ctypes.get_errno(), "unshare")
        if rank == 1:  # back to the namespace of this process, so that rank 1 begins in it
            with open("/proc/self/ns/pid") as own:  # noqa: PTH123
                assert libc.setns(own.fileno(), CLONE_NEWPID) == 0

    assert ranks(2, make_by_name, before=before) == [[1, 2]] * 2
    assert not any(SHM_FOLDER.iterdir())


def make_by_name(comm):
    """Make a region, and check that ranks open its file by name."""
    ways = []
    by_name = nameless._share_by_name
    nameless._share_by_name = lambda *args: ways.append("by name") or by_name(*args)
    made = make_region(comm, "")
    assert ways == ["by name"]
    return made


def with_kernels(act, *args):
    four_in_a_row(LocalBackend(), "python")
    library()  # now, because another user cannot read our folders
    with ShmBackend(ShmConfig(name="/first", rank=0, size=1)) as alone:
        make_region(alone, "")
    act(*args)


def throughout(act):
    """Mark as slow an act that starts hundreds of pairs of ranks."""
    return pytest.param(act, marks=[pytest.mark.slow, pytest.mark.timeout(900)], id=act)


@pytest.mark.parametrize(
    "act",
    [
        "kills handed-over 5",
        throughout("kills handed-over 100"),
        "kills by-name 5",
        throughout("kills by-name 100"),
        slow("interrupts"),
        "failures",
        "other_user",
        "other_pid_namespace",
    ],
)
def test_region(act):
    if os.geteuid() != 0 and act.startswith("other"):
        pytest.skip("only root can be another user, or in another PID namespace")
    name, *arguments = [word.replace("-", " ") for word in act.split(" ")]
    in_private_shm("64m", with_kernels, globals()[name], *arguments)
