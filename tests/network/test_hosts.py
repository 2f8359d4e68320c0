"""The properties of hosts on which the other tests of this package rely."""

import os
import pathlib
import signal
import subprocess
import sys

from tests.command import python
from tests.network import hosts as module

ROOT = pathlib.Path(__file__).parents[2]
LEAVES_HOSTS_BEHIND = """
import os
from tests.network.hosts import Network
network = Network(2)
print(*(host.name for host in network.hosts), flush=True)
os._exit(1)
"""


def names(of="*"):
    return {path.name for path in module.NAMESPACES.glob(f"{module.PREFIX}-{of}")}


def test_close_leaves_nothing(whole_network):
    ours = f"{os.getpid()}-*"  # other processes on this machine make hosts, too
    before = names(ours)
    with module.Network(2) as network:
        assert {host.name for host in network.hosts} <= names(ours)
    assert names(ours) == before


def test_next_process_sweeps_what_a_dead_one_left(whole_network):
    alive = {host.name for host in whole_network.hosts}
    done = python("-c", LEAVES_HOSTS_BEHIND, code=None, cwd=ROOT)
    left = set(done.stdout.split())
    assert len(left) == 2, done.stderr
    assert left <= names()
    module.sweep()
    assert not left & names()
    assert alive <= names()


def test_machine_keeps_its_interfaces(whole_network):
    """On a host, a thread sees the host's interfaces; afterwards it sees the machine's again."""
    show = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"

    def interfaces():
        return python("-c", show).stdout.strip()

    before = interfaces()
    with whole_network.hosts[0].inside():
        assert interfaces() == "['eth0', 'lo']"
    assert interfaces() == before


TELLS = """
import os, pathlib, socket, time
path = pathlib.Path("/dev/shm/of-this-host")
print(os.getpid() < 100, socket.gethostname(), path.exists(), pathlib.Path.cwd(), flush=True)
path.touch()
time.sleep(60)
"""


def test_hosts_share_neither_memory_nor_processes():
    command = [sys.executable, "-c", TELLS]
    with module.Network(2) as network:
        started = []
        for host in network.hosts:
            with host.inside():
                started.append(
                    subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
                )
            said = started[-1].stdout.readline().split()
            assert said == ["True", host.name.rpartition("-")[2], "False", str(ROOT)]
        assert not pathlib.Path("/dev/shm/of-this-host").exists()
    for process in started:  # when a host is removed, all processes on the host end
        assert process.wait(timeout=30) == -signal.SIGKILL
        process.stdout.close()
