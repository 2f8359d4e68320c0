"""Compile the training before any job, while the kernels of cobre_comm are compiled too.

    python ahead.py [--local]

A communicator needs kernels, but numba needs only the communicator's type. So a training is set up
on one rank with a communicator that moves nothing, and its iteration is compiled for the types of
that training. All backends but `local` have the same types. With `--local` the iteration is
compiled for the types of `local` too: this second compilation in the same process takes less than
half of the time of the first.
"""

import argparse
import gc
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from case.data import Case
from case.read import parse_case
from compiled import compiled_by_one
from numba import typeof
from stage.columns import rows_of_case
from stage.problem import build_problem
from stage.units import choose_units
from training.loop.trainer import train
from training.plan import Options
from training.run import Run
from training.share import Node, Setting

from cobre_comm import Communicator, LocalBackend, SharedRegion, ShmBackend, Work

CASE = Path(__file__).parent / "cases" / "gen_h4_t5_k3.json"
"""Any case would do: no type depends on the numbers of hydros, stages and so on."""


class NoWork(Work):
    """A work without items."""

    start = stop = 0

    def __init__(self) -> None:
        pass

    def close(self) -> None:
        """Do nothing, because nothing is open."""


class NoRegion(SharedRegion):
    """A private array of this rank, in place of a shared region."""

    def __init__(self, comm: Communicator, shape: Any) -> None:
        super().__init__(comm, np.zeros(shape), 0)

    def fence(self) -> None:
        """Do nothing, because no other rank writes."""

    def close(self) -> None:
        """Do nothing, because nothing is open."""


class Alone(Communicator):
    """A rank that has met no other: it has what a training asks for before its first iteration."""

    rank, size, is_leader = 0, 1, True

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass

    def create_shared_region(self, shape: Any, dtype: Any = np.float64) -> NoRegion:
        """Return an array of float64 in place of a region."""
        return NoRegion(self, shape)

    def create_work(self, items: int) -> NoWork:
        """Return a work without items."""
        return NoWork()

    def allgather(self, send: np.ndarray, recv: np.ndarray) -> None:
        """Copy the block of this rank, which is the only one."""
        recv[:] = send

    def phase_number(self, name: str) -> int:
        """Return a number for every name."""
        return 0


class AloneOnShm(Alone, ShmBackend):
    """A class to which numba gives the type of all communicators but those of `local`."""


class AloneOnLocal(Alone, LocalBackend):
    """A class to which numba gives the type of the communicators of `local`."""


def types_of_training(comm: Communicator, case: Case | None = None) -> tuple[Any, ...]:
    """Return the types of `train`'s arguments, which each training on such a communicator has."""
    case = case or parse_case(CASE.read_bytes(), CASE.name)
    units, openings = choose_units(case), sum(len(p) for p in case.probabilities)
    noise = NoRegion(comm, (openings, rows_of_case(case).limits)).as_slice()
    problem = build_problem(case, units, noise)
    run = Run(Setting(comm, Node(0, 1), case, units, problem), Options())
    return tuple(typeof(each) for each in run.arguments(run.trace))


def main(argv: list[str]) -> int:
    """Compile the iteration, unless it is compiled already."""
    parser = argparse.ArgumentParser(prog="ahead.py", description="Compile the training.")
    parser.add_argument("--local", action="store_true", help="for the backend local, too")
    kinds = [AloneOnShm, AloneOnLocal] if parser.parse_args(argv).local else [AloneOnShm]
    begun = time.monotonic()
    # Objects of numba live long, so garbage is collected less often than usual, which saves a sixth
    # of the time.
    gc.set_threshold(50_000, 20, 20)
    with compiled_by_one():
        for kind in kinds:
            train.compile(types_of_training(kind()))
    if sum(train.stats.cache_misses.values()):
        text = f"example compiled in {time.monotonic() - begun:.1f} s"
        print(text, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
