"""How long it takes until something happens: import, launcher, first collective, first compilation.

Each sample is a fresh process or job; the sides take turns. *Warm* is with the kernels in numba's
cache and the modules' bytecode in Python's, *cold* with neither: an empty NUMBA_CACHE_DIR, into
which `cobre-comm compile` compiles, once in a run of the benchmarks.

    python -m pytest bench/test_start.py
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
import starting
from measurements import LIBRARY_NAMES
from mpi_start import LIBRARIES, command
from recording import ratios

from cobre_comm import available_backends

MOST_ROUNDS = 5
OURS = "cobre_comm"
RANKS = {"import": 1, "load": 1, "hello": 4, "first-python": 2, "first-njit": 2}
LABELS = {
    "import": "import cobre_comm",
    "load": "load create_communicator",
    "hello": "cobre-comm run -n 4 examples/hello_ranks.py",
    "first-python": "first collective, from Python",
    "first-njit": "first collective, in @njit",
}
MPI = [LIBRARY_NAMES[library] for library in LIBRARIES]
SIDES = {
    "import": [OURS, "numpy", "numba"],
    "load": [OURS, "numpy", "numba"],
    "hello": [OURS, "python -c pass", *MPI],
    "first-python": [OURS, *MPI],
    "first-njit": [OURS, *MPI],
}


def sides_of(what: str, folder: Path) -> dict:
    """Return, by side, what measures one sample."""
    environ = starting.as_a_user(os.environ, folder)
    libraries = [name for name in LIBRARIES if Path(command(name, 1, "none")[0]).exists()]
    if what in ("import", "load"):
        ours = (
            "import cobre_comm"
            if what == "import"
            else "from cobre_comm import create_communicator"
        )
        statements = {OURS: ours, "numpy": "import numpy", "numba": "import numba"}
        return {side: partial(starting.import_s, s, environ) for side, s in statements.items()}
    mpi = {LIBRARY_NAMES[name]: starting.mpi_side(name, RANKS[what], folder) for name in libraries}
    launcher = starting.our_launcher(RANKS[what])
    if what == "hello":
        timed = partial(starting.process_s, says=starting.HELLO_SAYS)
        python = [sys.executable, "-c"]
        return {
            OURS: partial(timed, [*launcher, starting.HELLO], environ),
            "python -c pass": partial(starting.process_s, [*python, "pass"], environ),
            **{
                s: partial(timed, [*w, *python, starting.HELLO_MPI], e) for s, (w, e) in mpi.items()
            },
        }
    first = starting.first_collective_s
    door = what.removeprefix("first-")
    theirs = {side: partial(first, words, "mpi4py", env) for side, (words, env) in mpi.items()}
    return {OURS: partial(first, launcher, door, environ), **theirs}


@pytest.fixture(scope="module")
def started(pytestconfig):
    """Measure all sides of something when it is first asked for."""
    rounds = min(pytestconfig.getoption("rounds"), MOST_ROUNDS)
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as bytecode:

        def samples_of(what: str) -> dict[str, list[float]]:
            if what not in taken:
                taken[what] = starting.in_turn(sides_of(what, Path(bytecode)), rounds)
            return taken[what]

        yield samples_of


@pytest.mark.parametrize(
    ("what", "side"), [(w, side) for w, sides in SIDES.items() for side in sides]
)
def test_start(record, started, what: str, side: str) -> None:
    samples = started(what)
    if side not in samples:
        pytest.skip(f"{side} is not there: pip install {' or '.join(LIBRARIES)}")
    extra = {}
    if side == OURS:
        others = {name: taken for name, taken in samples.items() if name != OURS}
        extra = {
            "backend": None if RANKS[what] == 1 else "shm",
            "ratio_to": {name: ratios(samples[OURS], taken) for name, taken in others.items()},
        }
    record(
        samples[side], label=LABELS[what], operation="start", ranks=RANKS[what], side=side, **extra
    )


@pytest.mark.parametrize("backend", ["everything", *available_backends()])
def test_cold_compile(record, backend: str) -> None:
    """For all backends together, and for each alone: what its first job waits for."""
    faulthandler.cancel_dump_traceback_later()  # it takes longer than a test may
    taken = starting.cold_compile([] if backend == "everything" else [backend])
    extra = {} if backend == "everything" else {"backend": backend}
    record(
        [taken["wall_s"]],
        label=f"compile {backend}, cold",
        operation="start",
        ranks=1,
        side=OURS,
        cpu_s=taken["cpu_s"],
        **extra,
    )
