"""The private memory of a communicator over several nodes: its records and what they point to."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, cast

import numpy as np
from cobre_kernels.collective.comm import COMM, FORKED
from cobre_kernels.machine.record import LINE_BYTES, WORD_BYTES, Record, View, poke_now
from cobre_kernels.mpi import messages, records, round
from cobre_kernels.shm import barrier as shm_barrier
from cobre_kernels.shm import step as shm_step
from numpy.typing import NDArray

from cobre_comm.backends.comm_memory import comm_words
from cobre_comm.backends.mpi import library
from cobre_comm.backends.mpi.rendezvous import LOOK_S
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.common.running_time import running_s

if TYPE_CHECKING:
    from mpi4py import MPI

    from cobre_comm.backends.mpi.owned import OwnedObjects

LARGEST_HALF_BYTES = 2**30  # MPI counts it in a C int


class MpiMemory:
    """The records by which kernels call MPI; they live as long as MPI may write to them.

    Parameters
    ----------
    comm : View
        Of the record of the whole communicator, whose memory is ``words``.
    words : ndarray of int64
        That memory.
    owned : OwnedObjects
        Its communicators; gets a further one, of the leaders.
    node_order : NodeOrder
        Which ranks are where.

    Attributes
    ----------
    node : View
        Of the record of this rank among those of its node; to be attached to their segment before
        :meth:`use_staging_buffer`.
    """

    def __init__(
        self, comm: View, words: NDArray[np.int64], owned: OwnedObjects, node_order: NodeOrder
    ) -> None:
        self._arrays: list[NDArray[np.int64]] = [words]
        self._comm = comm
        self._say_goodbye = messages.goodbye_kernel.call  # loaded now: close may run at exit
        self._world, self._node_order = owned.world, node_order
        self._arrays.append(comm_words(owned.node.size))
        self.node = COMM.of(self._arrays[-1])
        self.node.rank, self.node.size = owned.node.rank, owned.node.size
        self.node.backend = comm.backend
        self.node.barrier_body = shm_barrier.barrier_body.address
        self.node.abandon_body = shm_step.abandon_body.address
        self._mpi = self._record(records.MPI)
        self._mpi.node = self.node
        self._mpi.enter_round_kernel = round.enter_round_kernel.address
        self._mpi.hand_out_kernel = round.hand_out_kernel.address
        self._describe_library(owned)
        self._describe_nodes(node_order)
        first = int(node_order.starts[node_order.node])
        self.node.names = self._mpi.node_order.address + first * WORD_BYTES
        self._make_messages(owned.world.size, node_order.nodes)

    def _record(self, record: Record, rows: int = 0) -> View:
        """Return a zeroed record, with room for so many rows of its own."""
        array = record.array(rows)
        self._arrays.append(array)
        return record.of(array)

    def _words(self, count_bytes: int) -> int:
        """Return the address of so many zeroed bytes."""
        return self._copy(np.zeros(-(-count_bytes // WORD_BYTES), dtype=np.int64))

    def _copy(self, values: NDArray[np.int64]) -> int:
        """Return the address of words that hold these values."""
        array = np.ascontiguousarray(values, dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _describe_library(self, owned: OwnedObjects) -> None:
        from mpi4py import MPI

        mpi, world = self._mpi, owned.world
        leads = owned.node.rank == 0
        leaders = world.Split(0 if leads else MPI.UNDEFINED, key=world.rank)
        mpi.handle_bytes = MPI._sizeof(MPI.Comm)
        mpi.world = _handle(world)
        mpi.byte = _handle(MPI.BYTE)
        mpi.in_place = int(MPI.IN_PLACE)
        mpi.any_source = MPI.ANY_SOURCE
        mpi.status = self._words(MPI._sizeof(MPI.Status))
        mpi.has_large_counts = library.has_large_counts()
        if leads:
            leaders.Set_errhandler(MPI.ERRORS_RETURN)
            mpi.leaders = _handle(leaders)
            owned.comms.insert(0, cast(MPI.Intracomm, leaders))
        world.Set_errhandler(MPI.ERRORS_RETURN)

    def _describe_nodes(self, node_order: NodeOrder) -> None:
        mpi, size = self._mpi, len(node_order.order)
        node_index, node_of = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        node_index[node_order.order] = np.arange(size)
        node_of[node_order.order] = np.repeat(
            np.arange(node_order.nodes), np.diff(node_order.starts)
        )
        mpi.nodes, mpi.own_node = node_order.nodes, node_order.node
        mpi.widest = int(np.diff(node_order.starts).max())
        mpi.node_order = self._copy(node_order.order)
        mpi.node_index = self._copy(node_index)
        mpi.node_starts = self._copy(node_order.starts)
        mpi.node_of = self._copy(node_of)

    def _make_messages(self, size: int, nodes: int) -> None:
        """Take memory for what leaders send and receive."""
        mpi = self._mpi
        mpi.header = self._record(records.HEADER)
        mpi.headers = self._words(nodes * records.HEADER.size_bytes)
        mpi.counts = self._words(4 * size * WORD_BYTES)
        mpi.reasons = self._words(size * WORD_BYTES)
        mpi.report_out = self._record(records.MESSAGE, size)
        mpi.query_out = self._record(records.MESSAGE)
        mpi.message_in = self._record(records.MESSAGE, size)
        mpi.sends = self._words(nodes * WORD_BYTES)
        mpi.answered = self._words(nodes * WORD_BYTES)

    def use_staging_buffer(self) -> None:
        """Take the slots of the node's segment; all nodes use as much. Collective."""
        from mpi4py import MPI

        comm, node, mpi = self._comm, self.node, self._mpi
        offset = records.halves_offset(comm.size)
        room = node.size * node.buffer_stride - offset
        half_bytes = min(room // 2 // LINE_BYTES * LINE_BYTES, LARGEST_HALF_BYTES)
        mpi.staging = node.buffers
        mpi.halves = node.buffers + offset
        mpi.half_bytes = self._world.allreduce(half_bytes, MPI.MIN)
        comm.timeout_ns, comm.spin_ns = node.timeout_ns, node.spin_ns
        comm.yield_ns, comm.mpi = node.yield_ns, mpi

    def mark_forked(self) -> None:
        """In a forked child: the record of the node is the parent's."""
        poke_now(self.node.guard, FORKED)

    def say_goodbye(self) -> None:
        """Tell the others that this rank closes."""
        self._say_goodbye(self._comm.address)

    def receive_goodbyes(self, limit_s: float) -> bool:
        """Receive the goodbyes that no wait has read: each other leader has sent one.

        A number of a communicator may be used again once it is freed, and so would they be.

        Parameters
        ----------
        limit_s : float
            How long to wait for them.

        Returns
        -------
        bool
            Whether all have come.
        """
        from mpi4py import MPI

        if not self._mpi.leaders:
            return True
        received = self._mpi.message_in
        buffer = (ctypes.c_char * records.message_bytes(self._world.size)).from_address(
            received.address
        )
        deadline = running_s() + limit_s
        while self._mpi.reports < self._node_order.nodes - 1:
            message = self._world.Improbe(source=MPI.ANY_SOURCE, tag=messages.TAG)
            if message is not None:
                message.Recv([buffer, MPI.BYTE])
                # A goodbye is the last that a leader sends; what it asked before has no answer now.
                self._mpi.reports += received.kind == messages.REPORT
            elif running_s() > deadline:
                return False
            else:
                time.sleep(LOOK_S)
        return True


def _handle(thing: MPI.Comm | MPI.Datatype) -> int:
    """Return a handle as a signed word."""
    from mpi4py import MPI

    return ctypes.c_int64(MPI._handleof(thing)).value


def least_buffer_bytes(node_order: NodeOrder) -> int:
    """Return the collective buffer of a rank that the staging buffer of a small node needs."""
    size, ranks = len(node_order.order), np.diff(node_order.starts)
    half_bytes = records.least_half_bytes(size, node_order.nodes, int(ranks.max()))
    staging_bytes = records.halves_offset(size) + 2 * (half_bytes + LINE_BYTES)
    return int(-(-staging_bytes // int(ranks.min())))
