import numpy as np

from cobre_comm import Communicator, launch


def evaluate(scenario: int, policy: float) -> float:
    draw = np.random.default_rng(scenario)
    return float(np.abs(draw.normal(policy, 1.0, 1000)).mean())


def improve(comm: Communicator, scenarios: int, rounds: int) -> float:
    policy = 1.0
    mine = range(*comm.share(scenarios))
    for _ in range(rounds):
        costs = np.array([evaluate(scenario, policy) for scenario in mine])
        policy -= 0.5 * (comm.exact_sum(costs) / scenarios - 0.9)
    return policy


if __name__ == "__main__":
    for ranks in (1, 2, 3):
        policy = launch(improve, ranks, args=(100, 5)).value
        print(f"policy {policy:.15f} on {ranks} ranks")
