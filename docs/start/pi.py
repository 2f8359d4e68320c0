import numpy as np

from cobre_comm import Communicator, launch, random


def count_hits(comm: Communicator, throws: int) -> tuple[int, int]:
    """Throw darts at a square; count on all ranks those inside its circle."""
    mine = np.arange(*comm.share(throws))  # a dart has the same place on every rank
    x, y = random.uniform(random.key(0), mine), random.uniform(random.key(1), mine)
    hits = int(np.count_nonzero(x**2 + y**2 < 1))
    return comm.sum(hits), hits


if __name__ == "__main__":
    result = launch(count_hits, 3, args=(300_000,))
    total, _ = result.value
    print("hits of each rank:", [hits for _, hits in result.values])
    print("pi is about", 4 * total / 300_000)
