"""MPI as a transport: the record by which kernels call MPI, and the memory of that record."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

import numpy as np
from cobre_kernels.collective.comm import BROKEN, IDLE, LEFT, PRESENT
from cobre_kernels.machine.record import WORD_BYTES, View
from cobre_kernels.mpi import calls, control, records, verbs, waiting
from cobre_kernels.nodes.messages import GOODBYE, REPORT
from cobre_kernels.nodes.records import HEADER_ROOM_BYTES
from numpy.typing import NDArray

from cobre_comm.backends.membership import NodeSegment
from cobre_comm.backends.mpi import library
from cobre_comm.backends.mpi.group import LOOK_S
from cobre_comm.backends.nodes.memory import UNLIMITED, NodesMemory, Verbs
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.config import MpiConfig
from cobre_comm.system.running_time import running_s

if TYPE_CHECKING:
    from mpi4py import MPI

    from cobre_comm.backends.mpi.owned import OwnedObjects

VERBS = Verbs(
    exchange=verbs.exchange_kernel,
    allgatherv=verbs.allgatherv_kernel,
    broadcast=verbs.broadcast_kernel,
    alltoallv=verbs.alltoallv_kernel,
    post=control.post_kernel,
    read=control.read_kernel,
    block=waiting.block_kernel,
    followers_post=True,
)


class MpiMemory(NodesMemory):
    """The records by which kernels call MPI; they live as long as MPI may write to them.

    ``words`` is the memory of the communicator's record. ``owned`` has the MPI objects; one of them
    is the communicator of the leaders.
    """

    def __init__(
        self, comm: View, words: NDArray[np.int64], owned: OwnedObjects, node_order: NodeOrder
    ) -> None:
        reach_bytes = UNLIMITED if library.has_large_counts() else calls.LARGEST_INT
        super().__init__(comm, words, node_order, VERBS, reach_bytes)
        # On a flat communicator MPI moves data between the buffers of callers. A leader may not
        # leave a wait, because then its caller may free these buffers.
        self.nodes.can_leave = not node_order.is_flat
        self.nodes.eager_bytes = HEADER_ROOM_BYTES if node_order.is_flat else 0
        self._world, self._peers = owned.world, node_order.nodes - 1
        self._mpi = comm.mpi = self.record(records.MPI)
        self._describe_library(owned)
        self._make_messages(owned.world.size, node_order.nodes)

    def _describe_library(self, owned: OwnedObjects) -> None:
        from mpi4py import MPI

        mpi, world = self._mpi, owned.world
        mpi.handle_bytes = MPI._sizeof(MPI.Comm)
        addresses = library.functions()
        mpi.functions = self.room(len(addresses) * WORD_BYTES)
        for number, address in enumerate(addresses):
            mpi.functions[number] = address
        mpi.world = _handle(world)
        mpi.byte = _handle(MPI.BYTE)
        mpi.in_place = int(MPI.IN_PLACE)
        mpi.any_source = MPI.ANY_SOURCE
        mpi.status = self.room(MPI._sizeof(MPI.Status))
        if owned.leaders is not None:
            owned.leaders.Set_errhandler(MPI.ERRORS_RETURN)
            mpi.leaders = _handle(owned.leaders)
        world.Set_errhandler(MPI.ERRORS_RETURN)

    def _make_messages(self, size: int, nodes: int) -> None:
        """Allocate the tables and messages that leaders send and receive."""
        mpi = self._mpi
        mpi.counts = self.room(4 * nodes * WORD_BYTES)
        mpi.message_bytes = records.message_bytes(size)
        mpi.outbox = self.room(records.OUTBOX_MESSAGES * mpi.message_bytes)
        mpi.inbox = self.room(mpi.message_bytes)
        mpi.sends = self.room(nodes * WORD_BYTES)

    def receive_goodbyes(self, limit_s: float) -> bool:
        """Receive the goodbyes that no wait has read; return whether all arrived in time.

        Each other leader has sent a goodbye. If a goodbye were not received here, a new
        communicator could receive it, because MPI may give the new communicator the number of a
        freed one.
        """
        from mpi4py import MPI

        if not self._mpi.leaders:
            return True
        nodes, received = self.nodes, self._mpi.inbox
        leaders = [nodes.leaders[node] for node in range(nodes.nodes)]
        buffer = (ctypes.c_char * self._mpi.message_bytes).from_address(received.address)
        deadline = running_s() + limit_s
        while sum(leader.condition != PRESENT for leader in leaders) < self._peers:
            message = self._world.Improbe(source=MPI.ANY_SOURCE, tag=control.TAG)
            if message is not None:
                message.Recv([buffer, MPI.BYTE])
                # A goodbye is a leader's last message. Queries that the leader sent before need no
                # answer now.
                if received.kind in (REPORT, GOODBYE):
                    leaders[nodes.node_of[received.sender]].condition = LEFT
            elif running_s() > deadline:
                return False
            else:
                time.sleep(LOOK_S)
        return True


def _handle(thing: MPI.Comm | MPI.Datatype) -> int:
    """Return a handle as a signed word."""
    from mpi4py import MPI

    return ctypes.c_int64(MPI._handleof(thing)).value


class MpiTransport:
    """MPI as a transport: the owned MPI objects of a communicator. On one node MPI moves no data.

    ``config`` has the choices that the ranks have made.
    """

    def __init__(self, config: MpiConfig, order: NodeOrder, objects: OwnedObjects) -> None:
        self.config, self.owned = config, objects
        self.half_bytes = 0  # the bytes of half a staging buffer, on every node
        self.pids: dict[int, int] = {}  # empty, because MPI tells no process ids
        self._order = order

    def begin(self, comm: View, words: NDArray[np.int64], attachment: NodeSegment) -> MpiMemory:
        """Make the records of a communicator; see :class:`~..membership.Transport`."""
        memory = MpiMemory(comm, words, self.owned, self._order)
        attachment.describe(comm)
        memory.use_staging_buffer(self.half_bytes)
        self.owned.receive_goodbyes = memory.receive_goodbyes
        self.owned.keep(attachment, memory)
        return memory

    def let_go(self, guard: int) -> None:
        """Mark the communicators, so that the next collective moment frees them."""
        # A broken communicator over several nodes may still have a request under way.
        is_quiet = guard == IDLE or (guard == BROKEN and self._order.nodes == 1)
        self.owned.is_closed = self.owned.is_closed or is_quiet
