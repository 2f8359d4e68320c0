"""The ranks of the only node of a communicator over MPI, as plain Python on threads.

The functions that replace MPI's act as the real ones do for a single leader. If a real function may
write to memory of the staging buffer, its replacement notes that all of this memory is written.
"""

import ctypes
import sys

import numpy as np
from cobre_kernels.collective.comm import FAILURE
from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.machine.record import LINE_BYTES, WORD_BYTES
from cobre_kernels.mpi import calls, control, verbs
from cobre_kernels.mpi.records import MPI, OUTBOX_MESSAGES, message_bytes
from cobre_kernels.nodes import messages, outcome, records, round
from cobre_kernels.shm import step

from cobre_comm.backends.nodes.memory import BODIES
from tests.kernels import shared_words
from tests.kernels.threads.recorder import copy_bytes, recorder
from tests.kernels.threads.world import World, give_bodies

MPI_ERROR = 17


def _ints(address):
    return ctypes.c_int32.from_address(address).value


def _written(address, count):
    with recorder.lock:
        recorder.data("store", "copy", address, count)
    return 0


def _set_flag(flag, value):
    ctypes.c_int64.from_address(flag).value = value
    return 0


def _iallgather(mpi, send, count, byte, recv, recv_count, recv_byte, comm, request):
    ctypes.memmove(recv, send, count)
    return 0


def _ialltoallv(mpi, send, given, given_at, byte, recv, got, got_at, recv_byte, comm, request):
    copy_bytes(recv + _ints(got_at), send + _ints(given_at), _ints(given))
    return 0


def _iallgatherv(mpi, send, count, byte, recv, given, given_at, recv_byte, comm, request):
    return _written(recv + _ints(given_at), _ints(given))


def _iallgatherv_left(mpi, send, count, byte, recv, given, given_at, recv_byte, comm, request):
    with recorder.lock:
        recorder.races.leave(recorder.ranks.own, recv + _ints(given_at), _ints(given))
    return MPI_ERROR


STAND_INS = {
    "_iallgather": _iallgather,
    "_iallgatherv": _iallgatherv,
    "_ialltoallv": _ialltoallv,
    "_ibcast": lambda mpi, buffer, count, byte, root, comm, request: _written(buffer, count),
    "_test": lambda mpi, request, flag, status: _set_flag(flag, 1),
    "_improbe": lambda mpi, source, tag, comm, flag, message, status: _set_flag(flag, 0),
}


class Node(World):
    """The ranks of a node; their communicator over MPI has no other node."""

    def __init__(self, size, **world):
        super().__init__(size, **world)
        for name, function in STAND_INS.items():
            setattr(calls, name, function)
        self._kept = []
        for comm in self.comms:
            self._add_nodes(comm)

    def name_of(self, address):
        """Return the name of the shared word at an address, or "data"."""
        if address >= self.buffers:
            return shared_words.name_at("Staging", address - self.buffers)
        return super().name_of(address)

    def _words(self, values):
        array = np.array(values, dtype=np.int64)
        self._kept.append(array)
        return array.ctypes.data

    def _record(self, record, rows=0):
        array = record.array(rows)
        self._kept.append(array)
        return record.of(array)

    def _add_nodes(self, comm):
        size = self.size
        mpi, nodes = self._record(MPI), self._record(records.NODES)
        comm.mpi, comm.nodes = mpi, nodes
        give_bodies(comm, BODIES)
        nodes.step_kernel = step.node_step_kernel.address
        nodes.enter_round_kernel = round.enter_round_kernel.address
        nodes.hand_out_kernel = outcome.hand_out_kernel.address
        nodes.exchange = verbs.exchange_kernel.address
        nodes.allgatherv = verbs.allgatherv_kernel.address
        nodes.broadcast = verbs.broadcast_kernel.address
        nodes.alltoallv = verbs.alltoallv_kernel.address
        nodes.report, nodes.post = messages.report_kernel.address, control.post_kernel.address
        nodes.read = control.read_kernel.address
        nodes.nodes, nodes.widest, nodes.can_leave = 1, size, 1
        nodes.node_order = nodes.node_index = self._words(range(size))
        nodes.node_starts, nodes.node_of = self._words([0, size]), self._words([0] * size)
        nodes.lanes = nodes.lanes_now = 1
        nodes.of_lane = self._words([comm.node.buffers])
        staging = nodes.of_lane[0].staging
        comm.pulse = staging.pulse
        comm.pulses, comm.pulses_count = self._words([staging.pulse.beats]), 1
        nodes.halves = comm.node.buffers + records.staging_bytes(size)
        room = size * comm.node.buffer_stride - records.staging_bytes(size)
        nodes.half_bytes = room // 2 // LINE_BYTES * LINE_BYTES
        nodes.header, nodes.headers = (self._record(records.LEADER_HEADER) for _ in range(2))
        nodes.calls = self._words([0] * (size * FAILURE.size_bytes // WORD_BYTES))
        for name in records.TABLES_BY_NODE:
            setattr(nodes, name, self._words([0]))
        mpi.counts = self._words([0] * 4)
        nodes.leaders = self._record(records.LEADER)
        nodes.reasons, nodes.report_words = (self._words([0] * size) for _ in range(2))
        nodes.raised_words = self._words([0] * (RAISED_BYTES // WORD_BYTES))
        mpi.sends = self._words([0])
        mpi.message_bytes = message_bytes(size)
        mpi.outbox, mpi.inbox = (
            self._words([0] * (count * mpi.message_bytes // WORD_BYTES))
            for count in (OUTBOX_MESSAGES, 1)
        )


class NodeThatIsLeft(Node):
    """The same node, but each gather fails, and MPI may still read the gather's buffer later."""

    def __init__(self, size, **world):
        super().__init__(size, **world)
        calls._iallgatherv = _iallgatherv_left


assert "mpi4py" not in sys.modules  # the replacements are for a process without MPI
