"""Errors, lines and pages are made, whatever else a process has open in /dev/shm."""

import os
import pathlib
import secrets
import socket
import sys

import pytest

from cobre_comm.journal.finding import journals_in
from cobre_comm.journal.shown import open_shared, shared_files
from cobre_comm.testing import run_ranks_outcomes
from tests.faults.odd import open_pipe, wait_for_one
from tests.grid import timeout_of
from tests.launch.command import cobre

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.mark.parametrize("call", ["late", "other"])
@pytest.mark.parametrize("backend", ["shm", "tcp:0,1"])
def test_a_rank_at_fault_has_a_pipe_open(backend, call, tmp_path):
    first, second = run_ranks_outcomes(
        backend, 2, wait_for_one, call, 1, 1, open_pipe, str(tmp_path), env=timeout_of(2)
    )
    assert first.ok, first
    assert second.ok, second
    ranks, _, notes = first.value
    assert ranks == ((1,) if call == "late" else (0, 1))
    assert sum("its last calls" in note for note in notes) == len(ranks)


def test_only_files_are_opened():
    with open_pipe() as pipe, socket.socket(socket.AF_UNIX) as listener:
        name = pathlib.Path(f"/dev/shm/socket-{secrets.token_hex(8)}")
        listener.bind(str(name))
        try:
            path = f"/proc/{os.getpid()}/fd/{pipe}"
            assert path not in list(shared_files(os.getpid()))
            # Since the files were listed, one may be closed, and a pipe have its descriptor.
            open_shared(path).close()
            assert journals_in(path) == []
            assert cobre("status").returncode in (0, 1)
        finally:
            name.unlink()
