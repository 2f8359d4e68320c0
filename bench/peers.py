"""The MPI libraries beside which ours is measured: as delivered, and Open MPI also tuned.

Intel's wheel and MPICH's have files of the same names, so Intel's has a folder of its own beside
the interpreter: ``pip install --prefix .venv/impi --ignore-installed impi-rt`` (`make bench`).
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.mpi.probe import find_library

LIBRARIES = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}
# Open MPI chooses among components for collectives; each of these two may be the fastest.
TUNED = {"openmpi-sm": "Open MPI coll/sm", "openmpi-han": "Open MPI coll/han"}
PEERS = LIBRARIES | TUNED
INTEL_PREFIX = Path(sys.prefix, "impi")
INSTALL = {
    "impi": f"pip install --prefix {INTEL_PREFIX} --ignore-installed impi-rt (Linux, x86-64)"
}
FIRST_CHOICE = "100"  # higher than the priority of any other component
VARIABLES: dict[str, dict[str, str]] = {
    "openmpi": {"OMPI_MCA_osc": "^ucx"},
    "impi": {"I_MPI_FABRICS": "shm"},
    "openmpi-sm": {"OMPI_MCA_coll_sm_priority": FIRST_CHOICE},
    "openmpi-han": {"OMPI_MCA_coll_han_priority": FIRST_CHOICE},
}


def library_of(peer: str) -> str:
    """Return the key of the library of which a peer is a variant."""
    return peer.partition("-")[0]


def environment_of(peer: str, crowded: bool) -> dict[str, str]:
    """Return the variables of a peer's ranks; ``crowded``: there are more ranks than cores.

    Crowded ranks of MPICH and Intel MPI give their core away while they wait. Ranks of Intel MPI
    are a tenth faster if they do this by sched_yield(2). Ranks of Open MPI give their core away
    only if a variable says so.
    """
    library = library_of(peer)
    made = VARIABLES.get(library, {}) | VARIABLES.get(peer, {})
    if library == "openmpi":
        made["OMPI_MCA_mpi_yield_when_idle"] = str(int(crowded))
    if library == "impi":
        known = os.environ.get("LD_LIBRARY_PATH", "")
        if crowded:
            made["I_MPI_THREAD_YIELD"] = "2"
        made["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(INTEL_PREFIX / "lib"), known]))
    return made


@cache
def require(peer: str) -> None:
    """Check that mpi4py loads this library and no other library.

    Raises
    ------
    InitializationFailed
        If mpi4py does not load the library; the error says how to install it.
    """
    library = library_of(peer)
    chosen = {**os.environ, **environment_of(peer, False), "MPI4PY_MPIABI": library}
    found = find_library(chosen)
    if found.vendor != library:
        advice = INSTALL.get(library, f"pip install {library}")
        raise InitializationFailed("mpi", f"{PEERS[peer]} is not there, but {found}: {advice}")
