"""Ranks of an MPI on hosts of their own; a launcher that cannot be the parent of its ranks."""

import os
import socket

import pytest

from bench.jobs import take_measurements
from bench.plan import Job, Options
from cobre_comm.processes.mpi import shim
from tests.command import python
from tests.grid import skip_unless_here
from tests.network.hosts import inside

pytestmark = pytest.mark.slow  # each test makes processes; `make test` has the suite's cases


def test_a_benchmark_starts_ranks_that_go_to_their_hosts(whole_network):
    skip_unless_here("mpi-openmpi")
    job = Job(2, "openmpi", cable="100mbit")
    assert take_measurements(job, [], Options()) == {"measurements": []}


def test_a_launcher_that_no_process_number_names_is_refused(hosts):
    """The rank would be a process of the namespace of the launcher, and not of the rank's host."""
    name = f"cobre-test-{os.getpid()}"
    words = "-I", "-S", shim.__file__, name, str(os.getpid())
    with inside(hosts[0].name):  # the socket's name belongs to the network of this host
        listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(f"\0{name}")
        listener.listen()
        with hosts[0].inside():
            done = python(*words, code=1)
    assert "of another namespace than this rank" in done.stderr
