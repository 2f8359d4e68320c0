"""The hosts themselves: what the other tests of this package rely on."""

import pathlib
import subprocess
import sys

from tests.network import hosts as module

ROOT = pathlib.Path(__file__).parents[2]
LEAVES_HOSTS_BEHIND = """
import os
from tests.network.hosts import Network
network = Network(2)
print(*(host.name for host in network.hosts), flush=True)
os._exit(1)
"""


def names():
    return {path.name for path in module.NAMESPACES.glob(f"{module.PREFIX}-*")}


def test_close_leaves_nothing(whole_network):
    before = names()
    with module.Network(2) as network:
        assert {host.name for host in network.hosts} <= names()
    assert names() == before


def test_next_process_sweeps_what_a_dead_one_left(whole_network):
    alive = {host.name for host in whole_network.hosts}
    command = [sys.executable, "-c", LEAVES_HOSTS_BEHIND]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    left = set(done.stdout.split())
    assert len(left) == 2, done.stderr
    assert left <= names()
    module.sweep()
    assert not left & names()
    assert alive <= names()


def test_machine_keeps_its_interfaces(whole_network):
    """Inside is inside, and afterwards this thread is where it was."""
    show = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"

    def interfaces():
        command = [sys.executable, "-c", show]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    before = interfaces()
    with whole_network.hosts[0].inside():
        assert interfaces() == "['eth0', 'lo']"
    assert interfaces() == before
