import hashlib

import numpy as np
from numba import njit
from numpy.typing import NDArray
from stage import OUTCOMES, STAGES, VOLUME_START, inflows, solve

from cobre_comm import Communicator, create_communicator


@njit(cache=True, nogil=True)
def train(
    comm: Communicator,
    inflow: NDArray[np.float64],
    iterations: int,
    passes: int,
    pool: NDArray[np.float64],
    bounds: NDArray[np.float64],
) -> None:
    """Fill the pool of cuts; note lower bound and simulated cost of each iteration."""
    first, last = comm.share(passes)  # trajectories of this rank
    counts, displs = comm.shares(passes, width=2)  # a cut is two numbers
    volumes = np.empty((passes, STAGES))
    costs = np.empty(last - first)
    cuts = np.empty((last - first, 2))
    for iteration in range(iterations):
        count = iteration * passes  # cuts of each stage so far
        for trajectory in range(first, last):  # forward: simulate the present policy
            np.random.seed(iteration * passes + trajectory)
            volume, total = VOLUME_START, 0.0
            for stage in range(STAGES):
                volumes[trajectory, stage] = volume
                outcome = np.random.randint(OUTCOMES)
                cost, _, volume, _ = solve(volume, inflow[stage, outcome], pool[stage + 1, :count])
                total += cost
            costs[trajectory - first] = total
        for stage in range(STAGES - 1, 0, -1):  # backward: a cut at each visited volume
            ahead = pool[stage + 1, : count + passes]
            for trajectory in range(first, last):
                volume = volumes[trajectory, stage]
                height, saved = 0.0, 0.0
                for outcome in range(OUTCOMES):
                    cost, to_go, _, worth = solve(volume, inflow[stage, outcome], ahead)
                    height += (cost + to_go) / OUTCOMES
                    saved += worth / OUTCOMES
                cuts[trajectory - first] = height + saved * volume, -saved
            comm.allgatherv(cuts, pool[stage, count : count + passes], counts, displs)
        lower = 0.0
        for outcome in range(OUTCOMES):
            cost, to_go, _, _ = solve(VOLUME_START, inflow[0, outcome], pool[1, : count + passes])
            lower += (cost + to_go) / OUTCOMES
        bounds[iteration] = lower, comm.exact_sum(costs) / passes


def main(iterations: int = 15, passes: int = 24) -> None:
    pool = np.zeros((STAGES + 1, iterations * passes, 2))
    bounds = np.empty((iterations, 2))
    with create_communicator() as comm:
        train(comm, inflows(), iterations, passes, pool, bounds)
        if comm.rank > 0:
            return
        print(f"{comm.size} ranks on {comm.backend}")
    for iteration in (0, 1, 2, 4, 9, 14):
        lower, simulated = bounds[iteration]
        print(f"iteration {iteration + 1:2}: lower bound {lower:.6f}, simulated {simulated:.6f}")
    np.save("bounds.npy", bounds)
    print("cuts", hashlib.sha256(pool.tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    main()
