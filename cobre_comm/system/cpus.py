"""The cores that processes may use, and their NUMA nodes and sockets, as Linux shows them in sysfs.

A *CPU* is a hardware thread, by the number that Linux gives it. If a core has two
CPUs, these often have distant numbers, such as 3 and 51.

Sources: sched_getaffinity(2), the kernel's cputopology.rst, and sysfs-devices-node of its ABI.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from cobre_comm.system.cores import core_numbers

SYSFS = pathlib.Path("/sys/devices/system")


class Core(NamedTuple):
    """A core."""

    cpus: tuple[int, ...]  # the CPUs of the core that this process may use, ascending
    numa: int  # 0 if Linux does not tell
    socket: int  # 0 if Linux does not tell


class Place(NamedTuple):
    """The CPUs on which a process may run, and their NUMA nodes, ascending; empty if unknown."""

    cpus: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()


UNKNOWN = Place()


def place_of(pid: int = 0) -> Place:
    """Return where a process, by default this one, may run, if the system tells."""
    try:
        cpus = sorted(os.sched_getaffinity(pid))
    except (AttributeError, OSError):  # not on Linux, or the process has ended
        return UNKNOWN
    node_of = numa_nodes()
    return Place(tuple(cpus), tuple(sorted({node_of.get(cpu, 0) for cpu in cpus})))


def read_cores(root: pathlib.Path | None = None, usable: Iterable[int] | None = None) -> list[Core]:
    """Return the cores that this process may use, ordered by socket and then by NUMA node.

    ``root`` is the folder that contains ``cpu`` and ``node``, by default SYSFS. ``usable`` are the
    CPUs of this process, by default those of its affinity; offline CPUs are left out.
    """
    root = root or SYSFS
    cpus = set(core_numbers() if usable is None else usable)
    cpus.intersection_update(numbers_in(root / "cpu/online") or cpus)
    numa = numa_nodes(root)
    cores = []
    while cpus:
        first = min(cpus)
        folder = root / f"cpu/cpu{first}/topology"
        siblings = {first, *cpus.intersection(numbers_in(folder / "thread_siblings_list"))}
        socket = 0
        with contextlib.suppress(OSError):
            socket = int((folder / "physical_package_id").read_text())
        cores.append(Core(tuple(sorted(siblings)), numa.get(first, 0), socket))
        cpus -= siblings
    return sorted(cores, key=lambda core: (core.socket, core.numa, core.cpus))


def numa_nodes(root: pathlib.Path | None = None) -> dict[int, int]:
    """Return the NUMA node of each CPU; empty if Linux does not tell."""
    found = {}
    for folder in sorted(((root or SYSFS) / "node").glob("node[0-9]*")):
        number = int(folder.name.removeprefix("node"))
        found.update(dict.fromkeys(numbers_in(folder / "cpulist"), number))
    return found


def numbers_in(path: pathlib.Path) -> list[int]:
    """Return the numbers in a file of sysfs; none if there is no such file."""
    try:
        return parse_cpus(path.read_text())
    except OSError:
        return []


def parse_cpus(text: str) -> list[int]:
    """Return the numbers in a list of sysfs, as in ``0-3,8``; the list may be empty."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            numbers.extend(range(int(first), int(last or first) + 1))
    return numbers
