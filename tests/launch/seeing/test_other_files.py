"""What else a process has open in /dev/shm keeps no error, line or page from being made."""

import contextlib
import os
import pathlib
import secrets
import socket
import sys
import time

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.journal.finding import journals_in, open_shared, shared_files
from cobre_comm.testing import run_ranks_outcomes
from tests.launch.command import cobre

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PATIENCE_S = 60.0
SHORT_S = {"COBRE_SHM_TIMEOUT_SECS": "2", "COBRE_TCP_TIMEOUT_SECS": "2"}


@contextlib.contextmanager
def open_pipe():
    """Hold a pipe open that lies in /dev/shm and has no writer; give its descriptor."""
    path = pathlib.Path(f"/dev/shm/solver-{secrets.token_hex(8)}")
    os.mkfifo(path)
    try:
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield pipe
        finally:
            os.close(pipe)
    finally:
        path.unlink()


def astray(comm, call, folder):
    """Rank 1 has a pipe open, and is late, or calls something else; return what is raised."""
    done = pathlib.Path(folder, "done")
    comm.barrier()
    with open_pipe() if comm.rank == 1 else contextlib.nullcontext():
        if comm.rank == 1 and call == "late":
            deadline = time.monotonic() + PATIENCE_S
            while not done.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            return None
        with pytest.raises(CollectiveFailed) as failed:
            comm.sum(1) if comm.rank == 1 else comm.barrier()
        done.touch()
        return failed.value.ranks, failed.value.__notes__


@pytest.mark.parametrize("call", ["late", "other"])
@pytest.mark.parametrize("backend", ["shm", "tcp:0,1"])
def test_a_rank_at_fault_has_a_pipe_open(backend, call, tmp_path):
    first, second = run_ranks_outcomes(
        backend, 2, astray, call, str(tmp_path), env=SHORT_S, timeout_s=PATIENCE_S
    )
    assert first.ok, first
    assert second.ok, second
    ranks, notes = first.value
    assert ranks == ((1,) if call == "late" else (0, 1))
    assert sum("its last calls" in note for note in notes) == len(ranks)


def test_only_files_are_opened():
    with open_pipe() as pipe, socket.socket(socket.AF_UNIX) as listener:
        name = pathlib.Path(f"/dev/shm/socket-{secrets.token_hex(8)}")
        listener.bind(str(name))
        try:
            path = f"/proc/{os.getpid()}/fd/{pipe}"
            assert path not in list(shared_files(os.getpid()))
            open_shared(path).close()  # the number of a file may have become that of a pipe
            assert journals_in(path) == []
            assert cobre("status").returncode in (0, 1)
        finally:
            name.unlink()
