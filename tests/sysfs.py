"""Writes folders that look like Linux's sysfs, for machines that the tests do not have."""

from pathlib import Path


def write_sysfs(
    root: Path, *, sockets=2, numa=2, cores=12, threads=2, offline=(), tells_numa=True
) -> Path:
    """Write the sysfs of a machine: ``numa`` NUMA nodes a socket, of ``cores`` cores each.

    CPUs are numbered as on most machines: first the first thread of every core, one NUMA node after
    the other, and then the second thread of every core. An offline CPU has a folder without a
    topology, as in Linux.
    """
    count = sockets * numa * cores
    for core in range(count):
        siblings = [core + thread * count for thread in range(threads)]
        on = [cpu for cpu in siblings if cpu not in offline]
        for cpu in siblings:
            folder = root / f"cpu/cpu{cpu}"
            folder.mkdir(parents=True)
            if cpu in on:
                (folder / "topology").mkdir()
                write(folder / "topology/thread_siblings_list", listed(on))
                write(folder / "topology/physical_package_id", core // (numa * cores))
    every = range(count * threads)
    write(root / "cpu/online", listed([cpu for cpu in every if cpu not in offline]))
    for node in range(sockets * numa) if tells_numa else ():
        here = [cpu for cpu in every if cpu % count // cores == node and cpu not in offline]
        (root / f"node/node{node}").mkdir(parents=True)
        write(root / f"node/node{node}/cpulist", listed(here))
    if tells_numa:
        write(root / "node/online", f"0-{sockets * numa - 1}")
    return root


def write(path, text):
    path.write_text(f"{text}\n")


def listed(numbers):
    """Return numbers in the form in which sysfs lists numbers, such as ``0-3,7``."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs)
