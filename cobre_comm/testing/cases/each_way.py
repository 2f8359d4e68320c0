"""Large calls by each of the ways that a communicator has for them (``cobre_kernels.shm.ways``)."""

from cobre_kernels.shm.ways import NAMES


def each_way(comm):
    """Yield once for each way, which large calls are then forced to take; all ranks do the same.

    A communicator without such ways yields once.
    """
    node = getattr(getattr(comm, "_comm", None), "node", None)
    before = getattr(node, "forced_way", None)
    if before is None:
        yield
        return
    try:
        for way in range(len(NAMES)):
            node.forced_way = way
            yield
    finally:
        node.forced_way = before
