"""Our communicator beside raw mpi4py, as the mpi benchmarks bind them to buffers."""

from __future__ import annotations

import os

from tcp_cases import Slot


def our_communicator(backend: str, world):
    """Return our communicator over the ranks of ``world``; another backend's tests a script."""
    from cobre_comm import BackendKind, ShmConfig, create_communicator

    if backend == "mpi":
        return create_communicator(BackendKind.MPI)
    name = world.bcast(f"/cobre-bench-{os.getpid()}", 0)
    return create_communicator(ShmConfig(name=name, rank=world.rank, size=world.size))


class Fresh:
    """A side whose data are written anew before each call, as a program's are.

    Else a library that reads a peer's memory finds there, in its own caches, what it has read the
    last time. The writing is in the times of both sides.

    Parameters
    ----------
    side : object
        Whose calls these are.
    rank : int
        This rank.
    """

    def __init__(self, side, rank: int) -> None:
        self._side, self._rank = side, rank
        self.in_rank_order = side.in_rank_order

    def bind(self, operation: str, slot: Slot | None):
        call = self._side.bind(operation, slot)
        if slot is None or (operation == "broadcast" and self._rank != 0):
            return call
        send, data = slot.send, slot.send.copy()

        def written_and_sent() -> None:
            send[:] = data
            call()

        return written_and_sent
