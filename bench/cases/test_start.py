"""Times of starting: import, launcher, first collective, the first job on a machine.

Each sample is a fresh process or job; the sides take turns. *Warm* is with the kernels in numba's
cache and the modules' bytecode in Python's. *Cold* is with empty caches: the first job of a user
who has installed the wheel, and `make demo` in a fresh clone. The demo begins with wheels on this
machine, and ends with the plot of the trained policy.
"""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import tempfile
from functools import partial

import pytest

from bench.cases import starting
from bench.peers import LIBRARIES
from bench.plan import OURS
from bench.ranks.timing import in_turn
from bench.recording import ratios

MOST_ROUNDS, MOST_COLD_ROUNDS = 5, 3
MPI = list(LIBRARIES.values())
# For each kind of start: the ranks, the label, the sides.
STARTS = {
    "import": (1, "import cobre_comm", [OURS, "numpy", "numba"]),
    "hello": (
        4,
        "cobre-comm run -n 4 examples/hello_ranks.py, warm",
        [OURS, "python -c pass", *MPI],
    ),
    "first-python": (2, "first collective, from Python", [OURS, *MPI]),
    "first-njit": (2, "first collective, in @njit", [OURS, *MPI]),
}


def sides_of(what: str, folder: str) -> dict:
    """Return, for each side, the function that measures one sample."""
    ranks = STARTS[what][0]
    words, environ = starting.our_start(ranks, folder)
    if what == "import":
        statements = {OURS: "import cobre_comm", "numpy": "import numpy", "numba": "import numba"}
        return {side: partial(starting.import_s, s, environ) for side, s in statements.items()}
    mpi = starting.mpi_starts(ranks, folder)
    if what == "hello":
        timed = partial(starting.process_s, says=starting.HELLO_SAYS)
        python = [sys.executable, "-c", "pass"]
        return {
            OURS: partial(timed, [*words, starting.HELLO], environ),
            "python -c pass": partial(starting.process_s, python, environ),
            **{s: partial(timed, [*w, "-c", starting.HELLO_MPI], e) for s, (w, e) in mpi.items()},
        }
    first = starting.first_collective_s
    theirs = {side: partial(first, w, "mpi4py", e) for side, (w, e) in mpi.items()}
    return {OURS: partial(first, words, what.removeprefix("first-"), environ), **theirs}


@pytest.fixture(scope="module")
def started(pytestconfig):
    """Measure all sides of a row of ``STARTS`` when a test asks for the first of them."""
    rounds = min(pytestconfig.getoption("rounds"), MOST_ROUNDS)
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as bytecode:

        def samples_of(what: str) -> dict[str, list[float]]:
            if what not in taken:
                faulthandler.cancel_dump_traceback_later()  # a row takes longer than a test may
                taken[what] = in_turn(sides_of(what, bytecode), rounds)
            return taken[what]

        yield samples_of


@pytest.mark.parametrize(
    ("what", "side"), [(what, side) for what, (_, _, sides) in STARTS.items() for side in sides]
)
def test_start(record, started, what: str, side: str) -> None:
    samples = started(what)
    if side not in samples:
        pytest.skip(f"{side} is not there: pip install {' or '.join(LIBRARIES)}")
    ranks, label, _ = STARTS[what]
    extra = {}
    if side == OURS:
        others = {name: taken for name, taken in samples.items() if name != OURS}
        extra = {
            "backend": None if ranks == 1 else "shm",
            "ratio_to": {name: ratios(samples[OURS], taken) for name, taken in others.items()},
        }
    record(samples[side], label=label, operation="start", ranks=ranks, side=side, **extra)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the wheel of this version; return its command."""
    faulthandler.cancel_dump_traceback_later()
    try:
        return starting.install(tmp_path_factory.mktemp("installed"))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the wheel, or what it needs, cannot be installed: {error}")


@pytest.mark.parametrize("backend", ["shm", "tcp", "mpi"])
def test_cold_run(record, pytestconfig, tmp_path, installed, backend: str) -> None:
    """The first job of a user who has installed the wheel."""
    rounds = min(pytestconfig.getoption("rounds"), MOST_COLD_ROUNDS)
    samples = [starting.cold_run_s(installed, backend, str(tmp_path)) for _ in range(rounds)]
    record(
        samples,
        label=f"cobre-comm run -n 4 examples/hello_ranks.py, cold, {backend}",
        operation="start",
        ranks=4,
        side=OURS,
        backend=backend,
    )


def test_demo(record) -> None:
    """`make demo` in a fresh clone, once."""
    faulthandler.cancel_dump_traceback_later()
    try:
        starting.download_wheels()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"what `make demo` installs cannot be downloaded: {error}")
    record(
        [starting.demo_s()],
        label="make demo in a fresh clone",
        operation="start",
        ranks=4,
        side=OURS,
    )
