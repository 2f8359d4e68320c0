"""Ranks of a benchmark started by Open MPI or MPICH, both from PyPI wheels in one environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tcp_openmpi import DEADLINE_S, MARK, result_of

LIBRARIES = ["openmpi", "mpich"]

__all__ = ["LIBRARIES", "MARK", "library_name", "run_with_mpi"]


def library_name(mpi) -> str:
    """Return name and version, such as ``Open MPI v5.0.11``."""
    text = mpi.Get_library_version()
    if text.startswith("MPICH Version"):
        return "MPICH " + text.split()[2]
    return text.splitlines()[0].split(",")[0]


def environment(mpi: str, size: int, pretend_nodes: str | None) -> dict[str, str]:
    """Return the environment in which mpi4py loads this library's wheel, also as root.

    Our backend spins if a node's ranks have a core each. Pretended nodes share the cores of this
    machine, of which the backend knows nothing.
    """
    prefix = Path(sys.prefix)
    root = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
    made = {
        **os.environ,
        "MPI4PY_MPIABI": mpi,
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        **{name: str(prefix) for name in ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")},
        **{name + tail: "1" for name in root for tail in ("", "_CONFIRM")},
    }
    if pretend_nodes:
        made["COBRE_MPI_PRETEND_NODES"] = pretend_nodes
        if size > (os.cpu_count() or 1):
            made.setdefault("COBRE_COMM_SPIN_US", "0")
    return made


def command(mpi: str, size: int, bind: str) -> list[str]:
    """Return the launcher and its options; in one environment ``mpiexec`` is MPICH's."""
    binary = Path(sys.prefix) / "bin" / ("prterun" if mpi == "openmpi" else "mpiexec.hydra")
    if mpi == "mpich":
        return [str(binary), "-n", str(size), "-bind-to", bind]
    words = [str(binary), "-n", str(size), "--bind-to", bind]
    return words + (["--map-by", ":OVERSUBSCRIBE"] if size > (os.cpu_count() or 1) else [])


def run_with_mpi(
    script: str,
    words: Sequence[object],
    size: int,
    mpi: str,
    bind: str = "none",
    pretend_nodes: str | None = None,
) -> dict:
    """Run a script of this folder on so many ranks; return rank 0's result.

    With it comes how busy the machine was before, for those who read the numbers.
    """
    load = os.getloadavg()[0]
    done = subprocess.run(
        [*command(mpi, size, bind), sys.executable, script, *(str(word) for word in words)],
        env=environment(mpi, size, pretend_nodes),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
    )
    told = {"ranks": size, "bind": bind, "nodes": pretend_nodes, "load_before": load}
    return {**told, **result_of(done.stdout)}
