"""Hosts made of namespaces, each with one cable to a common switch.

A host is a room of its own (``rooms.py``), a loopback and one end of a veth pair, ``eth0``. The
other end is a port of the switch, which is a bridge in a namespace of its own. No interface is ever
made in the namespace that the machine itself uses. The names of namespaces have the pid and the
start time of the process that made the namespaces. So the next process finds and removes what a
killed process has left behind.
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess

from tests.network.rooms import Room, entered

NAMESPACES = pathlib.Path("/run/netns")
PREFIX = "cobre-net"
COMMAND_TIMEOUT_S = 20
CABLE = "eth0"
# With these variables an MPI uses the cable. prterun listens at the cable too, because ranks are on
# other hosts.
MPI_ON_CABLE = {
    "OMPI_MCA_btl_tcp_if_include": CABLE,
    "PMIX_MCA_ptl_base_if_include": CABLE,
    "PMIX_MCA_ptl_base_remote_connections": "1",
    "UCX_NET_DEVICES": CABLE,
}
# A TCP segment has up to 64 KiB, and a bucket of twice that size lets it pass in one piece. Like a
# switch, the cable queues data of about 10 ms.
BURST_BYTES = 128 * 1024
QUEUE = "10ms"
_TOOL_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
# Local ports for the links of a host. The ports of jobs are reserved outside of the hosts, above
# these.
LINK_PORTS = "10000 32767"
_serial = itertools.count()


class CannotMakeHosts(Exception):
    """This user cannot have network namespaces, or this system has none; the message says why."""


def _tool(name, *words):
    """Run ``ip`` or ``tc``; return its output."""
    path = shutil.which(name, path=_TOOL_PATH)
    if path is None:
        raise CannotMakeHosts(f"{name} is not installed (package iproute2)")
    command = [path, *(str(word) for word in words)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise CannotMakeHosts(f"`{' '.join([name, *command[1:]])}` says: {done.stderr.strip()}")
    return done.stdout


def _started_at(pid):
    """Return the time when a process began, in clock ticks; None if there is no such process."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _owner_is_alive(name):
    pid, _, rest = name.removeprefix(f"{PREFIX}-").partition("-")
    return _started_at(pid) == rest.split("-")[0]


def leftovers():
    """Return the namespaces that dead processes have left behind."""
    found = sorted(path.name for path in NAMESPACES.glob(f"{PREFIX}-*"))
    return [name for name in found if not _owner_is_alive(name)]


def sweep():
    """Remove the namespaces of dead processes; a namespace ends with the last process inside it."""
    for name in leftovers():
        # another process may have removed the namespace meanwhile
        with contextlib.suppress(CannotMakeHosts):
            _tool("ip", "netns", "del", name)


def inside(namespace):
    """Return a context in which this thread and its children have the network of that namespace."""
    return entered({"net": NAMESPACES / namespace})


_for_good = contextlib.ExitStack()


def move_to(_, host):
    """Move this rank, which mpiexec has started, to the network of a host, where it stays."""
    _for_good.enter_context(inside(host))


def _remove(namespace):
    if (NAMESPACES / namespace).exists():
        _tool("ip", "netns", "del", namespace)


class Host:
    """One host: an address, and a cable that can be shaped, pulled out and plugged in again."""

    def __init__(self, prefix, number):
        self.name = f"{prefix}-h{number}"  # the name of its namespace in the list of ``ip netns``
        self.address = f"10.77.0.{number + 1}"
        self.address6 = f"fd77::{number + 1}"
        self.room = None  # while the host is connected: the room with its memory and processes
        self._switch = f"{prefix}-switch"
        self._port = f"port{number}"
        self.is_plugged = True

    def connect(self):
        """Make the host and its cable."""
        _tool("ip", "netns", "add", self.name)
        _tool("ip", "-n", self._switch, "link", "add", self._port, "type", "veth",
              "peer", "name", CABLE, "netns", self.name)  # fmt: skip
        _tool("ip", "-n", self._switch, "link", "set", self._port, "master", "bridge0", "up")
        _tool("ip", "-n", self.name, "address", "add", f"{self.address}/24", "dev", CABLE)
        _tool("ip", "-n", self.name, "address", "add", f"{self.address6}/64", "dev", CABLE,
              "nodad")  # fmt: skip
        for link in ("lo", CABLE):
            _tool("ip", "-n", self.name, "link", "set", link, "up")
        with inside(self.name):
            pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(LINK_PORTS)
        try:
            self.room = Room(self.name.rpartition("-")[2], NAMESPACES / self.name)
        except OSError as error:
            raise CannotMakeHosts(str(error)) from error

    def inside(self):
        """Return a context in which processes are started on this host."""
        return self.room.inside()

    def close(self):
        """End all processes on the host, and remove the host."""
        if self.room is not None:
            self.room.close()
        _remove(self.name)

    def shape(self, rate):
        """Limit the cable in both directions, for example to ``"1gbit"``; None ends the limit."""
        for namespace, link in ((self.name, CABLE), (self._switch, self._port)):
            limited = "tbf" in _tool("tc", "-n", namespace, "qdisc", "show", "dev", link)
            if limited:
                _tool("tc", "-n", namespace, "qdisc", "del", "dev", link, "root")
            if rate is not None:
                _tool("tc", "-n", namespace, "qdisc", "add", "dev", link, "root",
                      "tbf", "rate", rate, "burst", BURST_BYTES, "latency", QUEUE)  # fmt: skip

    def unplug(self):
        """Pull the cable out of the switch: both ends lose the carrier without a packet."""
        _tool("ip", "-n", self._switch, "link", "set", self._port, "down")
        self.is_plugged = False

    def plug(self):
        """Plug the cable into the switch again."""
        _tool("ip", "-n", self._switch, "link", "set", self._port, "up")
        self.is_plugged = True

    def links(self):
        """Return the names of the host's interfaces."""
        return sorted(
            link["ifname"] for link in json.loads(_tool("ip", "-j", "-n", self.name, "l"))
        )

    def traffic(self):
        """Return the bytes that have left the host over its cable, and those that have arrived."""
        shown = _tool("ip", "-j", "-s", "-n", self._switch, "link", "show", self._port)
        counters = json.loads(shown)[0]["stats64"]
        return counters["rx"]["bytes"], counters["tx"]["bytes"]


class Network:
    """Some hosts and their switch, as a context manager; may raise ``CannotMakeHosts``."""

    def __init__(self, count):
        sweep()
        prefix = f"{PREFIX}-{os.getpid()}-{_started_at(os.getpid())}-{next(_serial)}"
        self._switch = f"{prefix}-switch"
        self.hosts = [Host(prefix, number) for number in range(count)]
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        _tool("ip", "netns", "add", self._switch)
        _tool("ip", "-n", self._switch, "link", "add", "bridge0", "type", "bridge")
        _tool("ip", "-n", self._switch, "link", "set", "bridge0", "up")
        for host in self.hosts:
            host.connect()

    def restore(self):
        """Plug in all cables, and remove their limits; return whether any cable was pulled out."""
        was_out = not all(host.is_plugged for host in self.hosts)
        for host in self.hosts:
            host.shape(None)
            host.plug()
        return was_out

    def close(self):
        """Remove the hosts, the cables and the switch."""
        for host in self.hosts:
            host.close()
        _remove(self._switch)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
