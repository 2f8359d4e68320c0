"""Fresh processes, timed: imports, launchers, the first call, the first compilation."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mpi_start import command, environment
from tcp_openmpi import result_of

HERE = Path(__file__).parent
DEADLINE_S = 900
HELLO = str(HERE.parent / "examples" / "hello_ranks.py")
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
IMPORT = """
from time import perf_counter
began = perf_counter()
{}
print(perf_counter() - began)
"""


def as_a_user(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which bytecode is kept, which a developer may have switched off.

    Then it is kept in ``folder``. The caches of numba are the user's.
    """
    made = dict(environ)
    if made.pop("PYTHONDONTWRITEBYTECODE", None):
        made["PYTHONPYCACHEPREFIX"] = str(folder)
    return made


def output_of(words: list[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        words, env=environ, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S
    )
    return done.stdout


def import_s(statement: str, environ: Mapping[str, str]) -> float:
    """Return the seconds of an import in a fresh process, without the start of the interpreter."""
    return float(output_of([sys.executable, "-c", IMPORT.format(statement)], environ))


def process_s(words: list[str], environ: Mapping[str, str], says: str = "") -> float:
    """Return the seconds from starting a command to its end; it must have said something."""
    began = time.perf_counter()
    output = output_of(words, environ)
    taken = time.perf_counter() - began
    if says not in output:
        raise AssertionError(f"{words} did not print {says!r}:\n{output}")
    return taken


def our_launcher(ranks: int) -> list[str]:
    return [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), "--backend", "shm"]


def mpi_side(mpi: str, ranks: int, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return an MPI launcher's words and environment."""
    return command(mpi, ranks, "none"), as_a_user(environment(mpi, ranks, None), folder)


def first_collective_s(launcher: list[str], door: str, environ: Mapping[str, str]) -> float:
    """Return what the slowest rank of a fresh job measured; see first_collective.py."""
    script = [sys.executable] if door == "mpi4py" else []
    words = [*launcher, *script, str(HERE / "first_collective.py"), door]
    return result_of(output_of(words, environ))["seconds"]


def cold_compile(backends: Sequence[str]) -> dict[str, float]:
    """Return wall clock and CPU seconds of compiling for these backends; for none, for all."""
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as cache:
        environ = {**environment("openmpi", 1, None), "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, str(HERE / "cold_compile.py"), *backends]
        return result_of(output_of(command, environ))


def in_turn(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return what the sides took, in turn, after one round that fills the caches."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            taken = side()
            if number:
                samples[name].append(taken)
    return samples
