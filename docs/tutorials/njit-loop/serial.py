import time

import numpy as np
from numba import njit

SCENARIOS = 6000


@njit(cache=True)
def cost_of_year(scenario: int, target: float) -> float:
    """Return the cost of a year in which a reservoir is kept near a target."""
    np.random.seed(scenario)
    volume, cost = 50.0, 0.0
    for week in range(52):
        inflow = 10.0 + 6.0 * np.sin(week / 8.0) + 4.0 * np.random.normal()
        volume += max(inflow, 0.0)
        released = min(max(volume - target, 0.0), 14.0)
        volume = min(volume - released, 100.0)
        missing = max(14.0 - released * (0.6 + volume / 100.0), 0.0)  # more volume, more head
        cost += 20.0 * missing + missing**2
    return cost


@njit(cache=True)
def best_target(scenarios: int, rounds: int) -> tuple[float, float]:
    """Return the best target and its mean cost, by narrowing an interval."""
    low, high = 0.0, 100.0
    costs = np.empty(scenarios)
    mean = 0.0
    for _ in range(rounds):
        third = (high - low) / 3
        means = np.empty(2)
        for side in range(2):
            target = low + third * (1 + side)
            for scenario in range(scenarios):
                costs[scenario] = cost_of_year(scenario, target)
            means[side] = costs.sum() / scenarios
        if means[0] < means[1]:
            high -= third
        else:
            low += third
        mean = means.min()
    return (low + high) / 2, mean


if __name__ == "__main__":
    best_target(1, 1)  # compile
    start = time.perf_counter()
    target, mean = best_target(SCENARIOS, 30)
    print(f"target {target:.12f}, mean cost {mean:.12f}")
    print(f"{time.perf_counter() - start:.2f} s")
