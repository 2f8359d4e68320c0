"""Where the ranks of a communicator are and may run, and what has started and connects them."""

from __future__ import annotations

from dataclasses import dataclass

from cobre_comm.errors import runs
from cobre_comm.journal.texts import aligned


@dataclass(frozen=True, repr=False)
class Topology:
    """The nodes of a communicator, the ranks of each, their CPUs, and the launcher.

    The ``repr`` is a table, in which a star marks the node of this rank. Ranks of a node that may
    run on the same CPUs are in one row.

    Attributes
    ----------
    hosts : tuple of str
        The host name of each node. Nodes are in the order of their first ranks. A host has several
        nodes if its ranks cannot all share memory, or have been told not to share it.
    ranks : tuple of tuple of int
        The ranks of each node, ascending; they share memory and regions.
    node : int
        The node of this rank.
    launcher : str
        ``"cobre-comm run"``, ``"launch"``, ``"mpiexec"``, ``"srun"`` or ``"torchrun"``; "" if no
        launcher is known.
    library : str
        Name and version of the MPI library; "" on other backends than ``mpi``.
    cpus : tuple of tuple of int
        The CPUs on which each rank may run: the hardware threads, as the operating system numbers
        them. With one node, these are the CPUs at the moment of the call; with several nodes, the
        CPUs at the rendezvous. Empty if the CPUs of a rank are not known, as on macOS.
    numa : tuple of tuple of int
        The NUMA nodes to which the CPUs of each rank belong.
    kernels : str
        The level of the machine code that this rank runs, and how it is loaded, as in
        ``"x86-64-v3, a shared library"``.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> topology = LocalBackend().topology()
    >>> topology.ranks, topology.node, topology.library
    (((0,),), 0, '')
    """

    hosts: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    node: int
    launcher: str
    library: str
    cpus: tuple[tuple[int, ...], ...] = ()
    numa: tuple[tuple[int, ...], ...] = ()
    kernels: str = ""

    def __repr__(self) -> str:
        rows = [("node", "host", "ranks", "cpus", "numa")]
        for number, (host, ranks) in enumerate(zip(self.hosts, self.ranks, strict=True)):
            mark = "*" if number == self.node else ""
            together: dict[tuple[str, str], list[int]] = {}
            for rank in ranks:
                place = _listed(self.cpus, rank), _listed(self.numa, rank)
                together.setdefault(place, []).append(rank)
            for place, alike in together.items():
                rows.append((f"{number}{mark}", host, ",".join(runs(alike)), *place))
        launcher = f"launcher: {self.launcher or 'unknown'}"
        library = [f"library: {self.library}"] if self.library else []
        kernels = [f"kernels: {self.kernels}"] if self.kernels else []
        return "\n".join([*aligned(rows), launcher, *library, *kernels])


def _listed(of_ranks: tuple[tuple[int, ...], ...], rank: int) -> str:
    return ",".join(runs(of_ranks[rank] if of_ranks else ())) or "?"
