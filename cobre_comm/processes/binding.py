"""Which CPUs each rank of this machine gets: whole cores, near each other, in the order of ranks.

Ranks take cores in the order of their numbers. A rank takes all its cores from the first NUMA node
that has enough free cores, so that it reaches all of its memory without crossing to another NUMA
node. If no NUMA node has enough, the rank takes cores of the first socket that has enough. If no
socket has enough, it takes cores of the whole machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cobre_comm.system.cores import quota_cores, usable_cores
from cobre_comm.system.cpus import Core, read_cores

Cpus = tuple[int, ...]

BINDINGS = NONE, CORE, CORES, SOCKET, NUMA = "none", "core", "cores", "socket", "numa"

# The groups from which a rank takes its cores: first the cores that are nearest to each other.
_GROUPS: tuple[Callable[[Core], object], ...] = (
    lambda core: (core.socket, core.numa),
    lambda core: core.socket,
    lambda core: None,
)


@dataclass(frozen=True)
class Binding:
    """The CPUs of the ranks of this machine, and the number of threads of each rank."""

    threads: int | None = None  # of each rank; None: as many as there are cores for it
    cpus: tuple[Cpus, ...] = ()  # CPUs of each rank of this machine; empty if ranks are not bound


UNBOUND = Binding()


def place(
    ranks: int, bind: str, threads: int | None, cores: Sequence[Core] | None = None
) -> Binding:
    """Place the ranks of this machine; ``ValueError`` if there are too few cores for their threads.

    With ``core`` a rank is bound to one core, which it shares if there are more ranks than cores.
    With ``cores`` it is bound to as many cores as it has threads. With ``socket`` or ``numa`` it is
    bound to all of the socket or NUMA node in which these cores are. If ``threads`` is None, a rank
    has 1 thread with ``core``; otherwise it has a thread for each core of its share, and ranks
    share cores if there are more ranks than cores.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"--threads must be 1 or more, got {threads}")
    if bind == NONE:
        return Binding(threads)
    cores = read_cores() if cores is None else cores
    share = max(1, min(len(cores), quota_cores()) // ranks)
    threads_or_share = threads or (1 if bind == CORE else share)
    count = 1 if bind == CORE else threads_or_share
    if threads is not None and bind != CORE and ranks * threads > len(cores):
        raise ValueError(_too_few(ranks, bind, threads, cores))
    taken = _take(min(ranks, len(cores)), count, cores)
    bound = [_widened(taken[rank % len(taken)], bind, cores) for rank in range(ranks)]
    return Binding(threads_or_share, tuple(bound))


def auto_ranks(threads: int | None, cores: Sequence[Core] | None = None) -> int:
    """Return the number of ranks for ``-n auto``: as many as there are cores for their threads."""
    if threads is None:
        return usable_cores()
    cores = read_cores() if cores is None else cores
    return max(1, min(len(cores), quota_cores()) // max(1, threads))


def _take(ranks: int, count: int, cores: Sequence[Core]) -> list[list[Core]]:
    """Return ``count`` cores for each rank, no core twice; ``cores`` must have enough for all."""
    free = list(cores)
    taken = []
    for _ in range(ranks):
        own = next(found for group_of in _GROUPS if (found := _first(free, count, group_of)))
        free = [core for core in free if core not in own]
        taken.append(own)
    return taken


def _first(free: Sequence[Core], count: int, group_of: Callable[[Core], object]) -> list[Core]:
    """Return ``count`` free cores of the first group that has enough; none if no group has."""
    for group in dict.fromkeys(map(group_of, free)):
        own = [core for core in free if group_of(core) == group]
        if len(own) >= count:
            return own[:count]
    return []


def _widened(own: Sequence[Core], bind: str, cores: Sequence[Core]) -> Cpus:
    """Return the CPUs of these cores, or of all cores in the same sockets or NUMA nodes."""
    if bind == SOCKET:
        sockets = {core.socket for core in own}
        own = [core for core in cores if core.socket in sockets]
    elif bind == NUMA:
        numa = {core.numa for core in own}
        own = [core for core in cores if core.numa in numa]
    return tuple(sorted(cpu for core in own for cpu in core.cpus))


def _too_few(ranks: int, bind: str, threads: int, cores: Sequence[Core]) -> str:
    cpus = sum(len(core.cpus) for core in cores)
    of_cpus = f" (of {cpus} hardware threads)" if cpus > len(cores) else ""
    return (
        f"-n {ranks} --threads {threads} --bind {bind} needs {ranks * threads} cores, and this "
        f"process may use {len(cores)}{of_cpus}; ask for fewer, or say --bind none"
    )
