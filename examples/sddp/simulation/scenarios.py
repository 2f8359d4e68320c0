"""The scenarios on which a policy is evaluated: drawn from the case, or given in a file.

A scenario is the noise of every stage: inflows and demand. A drawn scenario depends on seed and
number alone, and differs from all that training draws.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from case.data import Case
from case.fields import CaseError, Field
from case.read import demand_by_bus
from compiled import FROM_PYTHON
from numba import njit
from stage.problem import Problem
from training.plan import Block
from training.sampling import draw_opening
from training.share import CASE_ERROR, USAGE, Setting, UsageError, tell

from cobre_comm import random

SIMULATED = 2**62
"""In a key, stands in place of the number of an iteration of training, which is never so large."""


@njit(**FROM_PYTHON)
def draw_block(problem: Problem, seed: int, begin: int, noise: np.ndarray) -> None:
    """Fill `noise` (n, T, H + B) with the drawn scenarios number begin..begin + n - 1."""
    for i in range(noise.shape[0]):
        for t in range(noise.shape[1]):
            first, last = problem.first[t], problem.first[t + 1]
            key = random.key(seed, SIMULATED, begin + i, t)
            k = draw_opening(problem.weight, first, last, key, False)
            for h in range(noise.shape[2]):
                noise[i, t, h] = problem.noise[k, h]


class Drawn:
    """A number of scenarios drawn from the openings of the case."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed
        self.source = f"drawn with seed {seed}"

    def noise(self, setting: Setting, block: Block) -> np.ndarray:
        """Return the (n, T, H + B) scaled noise of the scenarios in `block`."""
        width = setting.problem.noise.shape[1]
        noise = np.zeros((block.end - block.begin, setting.case.stages, width))
        draw_block(setting.problem, self.seed, block.begin, noise)
        return noise


class Given:
    """The scenarios of a file, in units of the case: `inflows` (S, T, H), `demand` (S, T, B)."""

    def __init__(self, inflows: np.ndarray, demand: np.ndarray, source: str) -> None:
        self.inflows, self.demand, self.source = inflows, demand, source
        self.count = len(inflows)

    def noise(self, setting: Setting, block: Block) -> np.ndarray:
        """Return the (n, T, H + B) scaled noise of the scenarios in `block`."""
        units, rows = setting.units, slice(*block)
        inflows = self.inflows[rows] / units.water
        return np.concatenate([inflows, self.demand[rows] / units.energy], axis=2)


Scenarios = Drawn | Given


def load_given(comm: Any, case: Case, path: Path) -> Given:
    """Return the scenarios in `path`, read by rank 0 and broadcast.

    The file is JSON: `inflows` [S][T][H], and `demand` [S][T][B], or [S][T] if there is one bus.
    Without `demand`, scenarios have the expected demand of the case.

    Raises
    ------
    CaseError, UsageError
        On every rank the same, if the file has other content, or cannot be read.
    """
    kind, data = tell(comm, *(_read(case, path) if comm.rank == 0 else (0, b"")))
    if kind == USAGE:
        raise UsageError(data.decode())
    if kind == CASE_ERROR:
        raise CaseError(*json.loads(data))
    return parse_given(data, case, path.name)


def _read(case: Case, path: Path) -> tuple[int, bytes]:
    """Return what rank 0 tells all ranks: a kind and bytes."""
    try:
        data = path.read_bytes()
        parse_given(data, case, path.name)
    except OSError as error:
        return USAGE, f"cannot read {path}: {error.strerror}".encode()
    except CaseError as error:
        return CASE_ERROR, json.dumps(error.args).encode()
    return 0, data


def parse_given(data: bytes, case: Case, file: str) -> Given:
    """Return the scenarios in `data`; `file` is only for naming it in errors."""
    try:
        root = Field(file, "", json.loads(data.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise CaseError(file, "the file", f"no valid JSON ({error})", "a JSON object") from None
    scenarios = root.get("inflows").items()
    if not scenarios:
        raise root.get("inflows").error("at least one scenario")
    inflows = [
        [row.numbers(len(case.hydros), "one per hydro") for row in s.items(case.stages, "stages")]
        for s in scenarios
    ]
    demand = [_expected_demand(case)] * len(scenarios)
    if root.has("demand"):
        rows = root.get("demand").items(len(scenarios), "one per scenario")
        demand = [
            [demand_by_bus(f, len(case.buses)) for f in row.items(case.stages, "one per stage")]
            for row in rows
        ]
    return Given(np.array(inflows), np.array(demand), f"of {file}")


def _expected_demand(case: Case) -> list[list[float]]:
    return [
        np.dot(probability, demand).tolist()
        for demand, probability in zip(case.demand, case.probabilities, strict=True)
    ]
