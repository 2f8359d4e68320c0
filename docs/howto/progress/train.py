"""Train for some iterations, with a progress bar that rank 0 draws."""

import time

from rich.progress import Progress

from cobre_comm import Communicator, create_communicator

ITERATIONS = 40


def improve(comm: Communicator, bound: float) -> float:
    """Do one iteration: each rank finds a step, and all take the mean of them."""
    time.sleep(0.02)  # a real iteration takes longer
    step = 0.3 * (1.0 - bound) / (comm.rank + 1)
    return bound + comm.sum(step) / comm.size


with create_communicator() as comm, Progress(disable=comm.rank > 0) as progress:
    bar = progress.add_task("training", total=ITERATIONS)
    bound = 0.0
    for _ in range(ITERATIONS):
        bound = improve(comm, bound)  # collective: outside of any branch on the rank
        progress.update(bar, advance=1, description=f"bound {bound:.4f}")
