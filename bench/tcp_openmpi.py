"""Ranks of a benchmark started by Open MPI, which then speaks over tcp and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MARK = "COBRE_BENCH_RESULT "
DEADLINE_S = 1800


def result_of(output: str) -> dict:
    """Return what rank 0 has printed after the mark."""
    line = next(line for line in output.splitlines() if MARK in line)
    return json.loads(line[line.index(MARK) + len(MARK) :])


def environment(interface: str) -> dict[str, str]:
    """Return the environment in which the PyPI wheel of Open MPI uses tcp on one interface.

    prterun takes ``--mca btl ...`` without an error and without an effect, so the transport is
    chosen by variables. Open MPI leaves the loopback interface out by default, and two ranks of a
    machine would name each other by another one's address.
    """
    prefix = Path(sys.prefix)
    root = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
    made = {
        **os.environ,
        "MPI4PY_MPIABI": "openmpi",
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        **{name: str(prefix) for name in ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")},
        **{name + tail: "1" for name in root for tail in ("", "_CONFIRM")},
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": interface,
    }
    if interface != "lo":  # prterun waits on the same one, for ranks that are elsewhere
        made["PMIX_MCA_ptl_base_if_include"] = interface
        made["PMIX_MCA_ptl_base_remote_connections"] = "1"
    return made


def run_with_openmpi(
    script: str, words: Sequence[object], size: int, bind: str = "none", interface: str = "lo"
) -> dict:
    """Run a script of this folder on so many ranks; return rank 0's result.

    With it comes how busy the machine was before, for those who read the numbers.
    """
    load = os.getloadavg()[0]
    command = [str(Path(sys.prefix) / "bin" / "prterun"), "-n", str(size), "--bind-to", bind]
    if size > (os.cpu_count() or 1):
        command += ["--map-by", ":OVERSUBSCRIBE"]
    command += [sys.executable, script, *(str(word) for word in words)]
    done = subprocess.run(
        command,
        env=environment(interface),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
    )
    return {**result_of(done.stdout), "load_before": load}
