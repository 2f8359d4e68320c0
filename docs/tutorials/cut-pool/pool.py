from pathlib import Path

import numpy as np
from numba import njit

from cobre_comm import Communicator, SharedRegion, create_communicator

STAGES, ROUNDS, CUTS, HYDROS = 24, 60, 8, 40  # cuts of each rank in each round


@njit(cache=True, nogil=True)
def fill(
    comm: Communicator, region: SharedRegion, stages: int, rounds: int, cuts: int, hydros: int
) -> float:
    """Add cuts to the pool of each stage, round by round; return its height at a point."""
    point = np.full(hydros, 0.5)
    height = 0.0
    for number in range(rounds):
        for stage in range(stages):
            start = ((stage * rounds + number) * comm.size + comm.rank) * cuts
            mine = region.part(start, start + cuts)
            for c in range(cuts):  # what a backward pass would compute
                mine[c, 0] = number + 0.1 * stage + 0.001 * (comm.rank + c)
                mine[c, 1:] = -1.0 / (1 + c)
        region.fence()
        height = 0.0
        for cut in region.as_slice()[: (number + 1) * comm.size * cuts]:
            height = max(height, cut[0] + np.sum(cut[1:] * point))
    return height


def shared_mib() -> float:
    """Return this process's fair share of the shared memory that it has mapped."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss_Shmem:")) / 1024


with create_communicator() as comm:
    rows = STAGES * ROUNDS * comm.size * CUTS
    region = comm.create_shared_region((rows, 1 + HYDROS))  # a cut: an intercept and its slopes
    height = fill(comm, region, STAGES, ROUNDS, CUTS, HYDROS)
    region.as_slice().sum()  # every rank reads the whole pool
    comm.barrier()
    grown = comm.sum(shared_mib())
    comm.barrier()
    if comm.rank == 0:
        print(f"height {height:.6f} on {comm.size} ranks")
        print(f"the pool has {region.nbytes / 2**20:.1f} MiB, all ranks together map {grown:.1f}")
