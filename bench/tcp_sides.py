"""Our calls and Open MPI's, as the tcp benchmarks bind them to buffers."""

from __future__ import annotations

import secrets
import socket
from functools import partial

from tcp_cases import Slot

STAR_BYTES = {"ring": 0, "star": 2**31}


def our_communicator(world, coordinator: str, star_bytes: int | None = None):
    """Return our communicator over the ranks of ``world``, which meet at rank 0's address."""
    from cobre_comm import TcpConfig, create_communicator

    with socket.create_server((coordinator, 0) if world.rank == 0 else ("", 0)) as free:
        drawn = free.getsockname()[1], secrets.token_hex(16)
    port, token = world.bcast(drawn, 0)
    return create_communicator(
        TcpConfig(
            rank=world.rank,
            size=world.size,
            coordinator=coordinator,
            bind_addr=coordinator,
            port=port,
            token=token,
            star_bytes=star_bytes,
        )
    )


def ring_and_star(world, coordinator: str) -> dict:
    """Return a communicator that sends all around the ring, and one that sends all by rank 0."""
    return {name: our_communicator(world, coordinator, most) for name, most in STAR_BYTES.items()}


class Ours:
    """Calls on a cobre_comm communicator."""

    in_rank_order = True

    def __init__(self, comm) -> None:
        from cobre_comm import ReduceOp

        self._comm = comm
        self._ops = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._comm.barrier
        if operation == "broadcast":
            return partial(self._comm.broadcast, slot.send, 0)
        if operation == "allgatherv":
            return partial(self._comm.allgatherv, slot.send, slot.recv, slot.counts, slot.displs)
        return partial(self._comm.allreduce, slot.send, slot.recv, self._ops[operation])


class OpenMpi:
    """The same calls on mpi4py's COMM_WORLD."""

    in_rank_order = False

    def __init__(self, mpi) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self._ops = {"sum": mpi.SUM, "min": mpi.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._world.Barrier
        if operation == "broadcast":
            return partial(self._world.Bcast, slot.send, 0)
        if operation == "allgatherv":
            unit = self._mpi.BYTE if slot.send.itemsize == 1 else self._mpi.DOUBLE
            gathered = [slot.recv, slot.counts, slot.displs, unit]
            return partial(self._world.Allgatherv, slot.send, gathered)
        return partial(self._world.Allreduce, slot.send, slot.recv, self._ops[operation])
