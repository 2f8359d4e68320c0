"""Train for a number of iterations, from the checkpoint on where there is one."""

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator

FILE = Path("policy.npy")
SCENARIOS = 12


def restore(comm: Communicator) -> NDArray[np.float64]:
    """Return the state on every rank: that of the checkpoint, or that of the beginning."""
    state = np.zeros(2)  # number of iterations, and the policy that they have found
    if comm.rank == 0 and FILE.exists():
        state[:] = np.load(FILE)
    comm.broadcast(state, root=0)
    return state


def save(state: NDArray[np.float64]) -> None:
    """Replace the checkpoint in one moment: a kill leaves the old one or the new one."""
    draft = FILE.with_suffix(".part")
    with draft.open("wb") as file:
        np.save(file, state)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(FILE)


def improve(comm: Communicator, state: NDArray[np.float64]) -> None:
    """Do one iteration; each rank takes some scenarios, each with its own random numbers."""
    iteration, policy = int(state[0]), state[1]
    mine = [
        np.random.default_rng([iteration, scenario]).normal(1.0 - policy)
        for scenario in range(comm.rank, SCENARIOS, comm.size)
    ]
    time.sleep(0.1)  # a real iteration takes longer
    state[1] += 0.3 * comm.exact_sum(np.array(mine)) / SCENARIOS
    state[0] += 1


def main(iterations: int) -> None:
    """Train until all iterations are done, or a signal asks to stop."""
    with create_communicator() as comm:
        state = restore(comm)
        first = int(state[0])
        while state[0] < iterations and not comm.stop_requested():
            improve(comm, state)
            if comm.rank == 0:
                save(state)
        if comm.rank == 0:
            print(f"{comm.size} ranks, iterations {first} to {state[0]:.0f}: policy {state[1]}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
