"""The private memory of a communicator over several nodes: its records and their tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cobre_kernels.collective.comm import FAILURE, LEADERS, RANKS
from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import LINE_BYTES, WORD_BYTES, Record, View
from cobre_kernels.nodes import messages, outcome, records, round, waiting
from cobre_kernels.nodes.failing import abandon_body
from cobre_kernels.shm.step import node_step_kernel
from numpy.typing import NDArray

from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.comm_memory import describe_pace
from cobre_comm.backends.nodes.node_order import NodeOrder

LARGEST_HALF_BYTES = 2**30  # MPI counts the bytes in a C int
UNLIMITED = 2**63 - 1

BODIES = Bodies("cobre_kernels.nodes", abandon_body)


@dataclass(frozen=True)
class Verbs:
    """The verbs of a transport, which move data between leaders (docs/design/nodes.md).

    The kernels are those of ``cobre_kernels/nodes/verbs.py``.
    """

    exchange: Kernel
    allgatherv: Kernel
    broadcast: Kernel
    alltoallv: Kernel
    post: Kernel
    read: Kernel
    block: Kernel
    chain: Kernel | None = None  # the verb of the chain; None if the transport has none
    sees_bytes: bool = False  # whether the limit of a wait begins anew when bytes move
    followers_post: bool = False  # whether ``post`` works on followers too


class NodesMemory:
    """The records by which kernels work on several nodes; keep them as long as kernels may run.

    ``words`` is the memory of the communicator's record. A part of a buffer that
    ``verbs.allgatherv`` moves has to end within the first ``reach_bytes`` of the buffer.
    """

    def __init__(
        self, comm: View, words: NDArray[np.int64], node_order: NodeOrder, verbs: Verbs,
        reach_bytes: int = UNLIMITED,
    ) -> None:  # fmt: skip
        self._arrays: list[NDArray[np.int64]] = [words]
        self._comm = comm
        has_lane = node_order.has_lane
        self._goodbye = messages.goodbye_kernel.call if has_lane else None
        self.nodes = nodes = self.record(records.NODES)
        nodes.step_kernel = node_step_kernel.address
        nodes.enter_round_kernel = round.enter_round_kernel.address
        nodes.hand_out_kernel = outcome.hand_out_kernel.address
        nodes.exchange = verbs.exchange.address
        nodes.report = messages.report_kernel.address
        nodes.post = verbs.post.address if has_lane or verbs.followers_post else 0
        nodes.read = verbs.read.address
        nodes.allgatherv, nodes.alltoallv = verbs.allgatherv.address, verbs.alltoallv.address
        nodes.broadcast = verbs.broadcast.address
        nodes.chain = verbs.chain.address if verbs.chain else 0
        nodes.can_leave, nodes.reach_bytes, nodes.sees_bytes = True, reach_bytes, verbs.sees_bytes
        describe_pace(comm, LEADERS, verbs.block, waiting.look_around_kernel)
        self._describe(node_order)

    def record(self, record: Record, rows: int = 0) -> View:
        """Return a zeroed record, with room for ``rows`` own rows."""
        array = record.array(rows)
        self._arrays.append(array)
        return record.of(array)

    def room(self, count_bytes: int) -> int:
        """Return the address of ``count_bytes`` zeroed bytes."""
        return self._copy(np.zeros(-(-count_bytes // WORD_BYTES), dtype=np.int64))

    def _copy(self, values: NDArray[np.int64]) -> int:
        """Return the address of words that hold these values."""
        array = np.ascontiguousarray(values, dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _describe(self, node_order: NodeOrder) -> None:
        nodes, order, count = self.nodes, node_order.order, node_order.nodes
        ranks = np.diff(node_order.starts)
        node_index, node_of = np.empty_like(order), np.empty_like(order)
        node_index[order] = np.arange(len(order))
        node_of[order] = np.repeat(np.arange(count), ranks)
        nodes.nodes, nodes.own_node = count, node_order.node
        nodes.lanes, nodes.lane, nodes.lanes_now = node_order.lanes, node_order.lane, 1
        nodes.widest = int(ranks.max())
        nodes.is_ordered = bool((node_index == order).all() and (np.diff(order) == 1).all())
        nodes.node_order = self._copy(order)
        nodes.node_index, nodes.node_of = self._copy(node_index), self._copy(node_of)
        nodes.node_starts = self._copy(node_order.starts)
        first = int(node_order.starts[node_order.node])
        self._comm.node.names = nodes.node_order.address + first * WORD_BYTES
        nodes.header = self.record(records.LEADER_HEADER)
        nodes.headers = self.room(count * records.LEADER_HEADER.size_bytes)
        nodes.calls = self.room(len(order) * FAILURE.size_bytes)
        nodes.leaders = self.room(count * records.LEADER.size_bytes)
        nodes.reasons = self.room(len(order) * WORD_BYTES)
        nodes.report_words = self.room(len(order) * WORD_BYTES)
        nodes.raised_words = self.room(RAISED_BYTES)
        for name in records.TABLES_BY_NODE:
            setattr(nodes, name, self.room(count * WORD_BYTES))

    def use_staging_buffer(self, half_bytes: int) -> None:
        """Use the slots of the node's segment as staging buffer, ``half_bytes`` for each half.

        Call this after ``describe`` has filled the record. A leader that waits for leaders spins
        and yields as long as in waits for the ranks of its node, unless the transport sets other
        times.
        """
        comm, nodes = self._comm, self.nodes
        nodes.half_bytes = half_bytes
        nodes.halves = self.stage_at(comm.node.buffers)
        ranks, leaders = comm.paces[RANKS], comm.paces[LEADERS]
        leaders.spin_ns, leaders.yield_ns = ranks.spin_ns, ranks.yield_ns
        comm.nodes = nodes

    def stage_at(self, begin: int) -> int:
        """Place the shared words of all lanes in memory of the node; return where they end."""
        comm, nodes, stride = self._comm, self.nodes, records.staging_bytes(self._comm.size)
        nodes.of_lane = self.room(nodes.lanes * records.LANE.size_bytes)
        comm.pulses, comm.pulses_count = self.room(nodes.lanes * WORD_BYTES), nodes.lanes
        for lane in range(nodes.lanes):
            nodes.of_lane[lane].staging = begin + lane * stride
            comm.pulses[lane] = nodes.of_lane[lane].staging.pulse.beats
        comm.pulse = nodes.of_lane[nodes.lane].staging.pulse
        return int(begin + nodes.lanes * stride)

    def say_goodbye(self) -> None:
        """As a leader, tell the other leaders of its lane that this leader closes.

        A follower tells no leader. Its own leader notices in the next round that the follower is
        missing.
        """
        if self._goodbye is not None:
            self._goodbye(self._comm.address)


def half_bytes_of(node_order: NodeOrder, buffer_bytes: int) -> int:
    """Return the bytes of half a staging buffer of this node; all nodes use the smallest half.

    ``buffer_bytes`` is the collective buffer of each rank of this node.
    """
    offset = node_order.lanes * records.staging_bytes(len(node_order.order))
    room = len(node_order.here) * buffer_bytes - offset
    return int(min(room // 2 // LINE_BYTES * LINE_BYTES, LARGEST_HALF_BYTES))


def least_buffer_bytes(node_order: NodeOrder) -> int:
    """Return the bytes of collective buffer per rank that the smallest node needs for staging."""
    size, ranks, lanes = len(node_order.order), np.diff(node_order.starts), node_order.lanes
    half_bytes = records.least_half_bytes(size, node_order.nodes, int(ranks.max()), lanes)
    staging_bytes = lanes * records.staging_bytes(size) + 2 * (half_bytes + LINE_BYTES)
    return int(-(-staging_bytes // int(ranks.min())))
