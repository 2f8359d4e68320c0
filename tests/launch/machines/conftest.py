"""Launchers that stand for machines of a job."""

import contextlib
import sys

import pytest

from cobre_comm.processes.port import ReservedPort
from tests.launch.command import PROGRAMS, Running

# Lost machines get no time to return, and no attempt is too long to have died at once.
HASTY = [sys.executable, "-c", "from cobre_comm import cli; from cobre_comm.processes import "
         "restarts; restarts.AT_ONCE_S = 1e9; from cobre_comm.run import machines; "
         "machines.REJOIN_S = 0; raise SystemExit(cli.main())"]  # fmt: skip


@pytest.fixture
def machine(tmp_path):
    """Return a function that starts the launcher of a machine, by default of one rank."""
    token_file = tmp_path / "job.token"
    token_file.touch(mode=0o600)
    token_file.write_text("a1" * 32)
    notes = tmp_path / "notes"
    notes.mkdir()
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(ReservedPort()).port

        def start(node, *words, way=None, nodes=2, ranks=1, before=HASTY, program=()):
            place = "--nnodes", nodes, "--node-rank", node, "--coordinator", f"127.0.0.1:{port}"
            told = "run", "-n", ranks, *place, "--token-file", token_file, *words
            program = program or (PROGRAMS / "restarts.py", notes, *way)
            extra = {"COBRE_COMM_GRACEFUL": "SIGUSR1"}
            return stack.enter_context(Running(*told, *program, before=before, extra=extra))

        yield start
