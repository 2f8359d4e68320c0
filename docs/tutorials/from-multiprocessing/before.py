from multiprocessing import Pool

import numpy as np


def evaluate(task: tuple[int, float]) -> float:
    scenario, policy = task
    draw = np.random.default_rng(scenario)
    return float(np.abs(draw.normal(policy, 1.0, 1000)).mean())


if __name__ == "__main__":
    policy = 1.0
    with Pool(2) as pool:
        for _ in range(5):
            costs = pool.map(evaluate, [(s, policy) for s in range(100)])
            policy -= 0.5 * (float(np.mean(costs)) - 0.9)
    print(f"policy {policy:.15f}")
