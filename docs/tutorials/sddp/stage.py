import numpy as np
from numba import njit
from numpy.typing import NDArray

STAGES, OUTCOMES = 24, 8
VOLUME_MAX, VOLUME_START, DEMAND = 200.0, 100.0, 100.0
CAPACITY = np.array([30.0, 25.0, 20.0, 1e9])  # the last one is demand that is not met
PRICE = np.array([20.0, 60.0, 150.0, 1000.0])


def inflows() -> NDArray[np.float64]:
    """Return what flows in, by stage and outcome."""
    season = 55 + 35 * np.sin(2 * np.pi * np.arange(STAGES) / 12)
    factor = np.exp(np.random.default_rng(1).normal(0, 0.4, (STAGES, OUTCOMES)))
    return season[:, None] * factor


@njit(cache=True)
def thermal(power: float) -> tuple[float, float]:
    """Return cost and marginal cost of what thermal plants generate."""
    cost = 0.0
    if power <= 0:
        return cost, 0.0
    for plant in range(CAPACITY.size):
        if power <= CAPACITY[plant]:
            return cost + PRICE[plant] * power, PRICE[plant]
        cost += PRICE[plant] * CAPACITY[plant]
        power -= CAPACITY[plant]
    return cost, PRICE[-1]


@njit(cache=True)
def future(volume: float, cuts: NDArray[np.float64]) -> tuple[float, float]:
    """Return height and slope of the highest cut at a volume."""
    height, slope = 0.0, 0.0
    for intercept, steepness in cuts:
        value = intercept + steepness * volume
        if value > height:
            height, slope = value, steepness
    return height, slope


@njit(cache=True)
def solve(
    volume: float, inflow: float, cuts: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Return cost now, cost to go, next volume, and what one more unit of water saves."""
    water = volume + inflow
    low, high = 0.0, min(VOLUME_MAX, water)
    for _ in range(60):  # the sum of both costs is convex: bisect its slope
        middle = (low + high) / 2
        if thermal(DEMAND - water + middle)[1] + future(middle, cuts)[1] <= 0:
            low = middle
        else:
            high = middle
    cost, marginal = thermal(DEMAND - water + low)
    to_go = future(low, cuts)[0]
    if high == VOLUME_MAX:  # the reservoir is full: more water is used, or spilled, now
        return cost, to_go, low, marginal
    return cost, to_go, low, max(marginal, -future(high, cuts)[1])
