import random

from cobre_comm import Communicator, launch


def count_hits(comm: Communicator, throws: int) -> tuple[int, int]:
    """Throw darts at a square; count on all ranks those inside its circle."""
    draw = random.Random(comm.rank)
    hits = sum(draw.random() ** 2 + draw.random() ** 2 < 1 for _ in range(throws))
    return comm.sum(hits), hits


if __name__ == "__main__":
    result = launch(count_hits, 3, args=(100_000,))
    total, _ = result.value
    print("hits of each rank:", [hits for _, hits in result.values])
    print("pi is about", 4 * total / 300_000)
