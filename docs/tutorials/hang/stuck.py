import numpy as np

from cobre_comm import create_communicator


def root_of(x: float) -> float:
    """Return the square root of x, by Newton's method."""
    guess = 1.0
    while guess * guess != x:  # never equal for some x
        guess = (guess + x / guess) / 2
    return guess


with create_communicator() as comm:
    total = np.empty(1)
    for number in range(1, 4):
        x = 4.0 if comm.rank != 1 else float(number)
        comm.allreduce(np.array([root_of(x)]), total)
    print(total)
