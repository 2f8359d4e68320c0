"""Let free ranks price contracts, some of which take a hundred times longer than others."""

import numpy as np
from numba import njit

from cobre_comm import SharedRegion, Work, create_communicator, random

CONTRACTS, ROUNDS = 200, 3


@njit(cache=True)
def price(contract: int, round_: int) -> float:
    """Return a mean over paths; how many there are depends on the contract."""
    size = random.normal(random.key(7, contract), 0)
    paths = int(20_000 * np.exp(1.5 * size)) + 1
    key, total = random.key(2026, round_, contract), 0.0
    for path in range(paths):
        total += max(random.normal(key, path), 0.0)
    return total / paths


@njit(cache=True)
def price_claimed(work: Work, prices: SharedRegion, round_: int) -> None:
    """Price each contract that this rank claims."""
    contract = work.claim()
    while contract >= 0:
        prices.part(contract, contract + 1)[0] = price(contract, round_)
        contract = work.claim()


with create_communicator() as comm:
    work = comm.create_work(CONTRACTS)
    prices = comm.create_shared_region(CONTRACTS)
    for round_ in range(ROUNDS):
        price_claimed(work, prices, round_)
        prices.fence()
        own = prices.as_slice()[work.start : work.stop] if comm.is_leader else np.zeros(0)
        total = comm.exact_sum(own)  # of the prices of all nodes
        if comm.rank == 0:
            print(f"round {round_}, {comm.size} ranks: {total!r}")
        costs = work.measured_costs()
        work.reset(order=np.argsort(-costs, kind="stable"), costs=costs)
