"""Launchers that stand for machines of a job."""

import contextlib

import pytest

from cobre_comm.processes.port import ReservedPort
from tests.launch.command import Running


@pytest.fixture
def machine():
    """Return a function that starts one of two launchers, which stand for two machines."""
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(ReservedPort()).port

        def start(node, *words, ranks=1):
            place = "--nnodes", 2, "--node-rank", node, "--coordinator", f"127.0.0.1:{port}"
            extra = {"COBRE_TCP_TOKEN": "a1" * 32}
            return stack.enter_context(Running("run", "-n", ranks, *place, *words, extra=extra))

        yield start
