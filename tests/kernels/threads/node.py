"""The ranks of one node over MPI, as plain Python on threads, with an MPI that has no other node.

The stand-ins for MPI's calls do what the real ones do for a single leader, and note as written
whatever part of the staging buffer the real ones may write.
"""

import ctypes
import sys

import numpy as np
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.record import LINE_BYTES
from cobre_kernels.mpi import allgatherv, allreduce, barrier, broadcast, calls, messages
from cobre_kernels.mpi import round as rounds
from cobre_kernels.mpi.records import HEADER, MESSAGE, MPI, halves_offset

from tests.kernels import shared_words
from tests.kernels.threads.recorder import copy_bytes, recorder
from tests.kernels.threads.world import World


def _int(address):
    return ctypes.c_int32.from_address(address).value


def _wrote(address, count):
    with recorder.lock:
        recorder.data("store", "copy", address, count)
    return 0


def _begin_allgather(mpi, header, headers, count):
    ctypes.memmove(headers, header, count)
    return 0


def _flag(value):
    def call(mpi, argument):
        ctypes.c_int64.from_address(mpi.flag).value = value
        return 0

    return call


def _alltoallv(mpi, send, send_counts, send_displs, recv, recv_counts, recv_displs):
    copy_bytes(recv + _int(recv_displs), send + _int(send_displs), _int(send_counts))
    return 0


STAND_INS = {
    "begin_allgather": _begin_allgather,
    "test": _flag(1),
    "match_message": _flag(0),
    "allgatherv": lambda mpi, recv, counts, displs: _wrote(recv + _int(displs), _int(counts)),
    "alltoallv": _alltoallv,
    "bcast": lambda mpi, buffer, count, root: _wrote(buffer, count),
    "begin_send": lambda *arguments: 0,
}


class Node(World):
    """The ranks of a node; :attr:`comms` are of the whole communicator, as large as the node."""

    def __init__(self, size, **world):
        super().__init__(size, **world)
        for name, function in STAND_INS.items():
            setattr(calls, name, function)
        self._kept = [self.words]
        self.comms = [
            self._over_mpi(node, words) for node, words in zip(self.comms, self.words, strict=True)
        ]

    def name_of(self, address):
        """Return the name of the shared word at an address, or "data"."""
        if address >= self.buffers:
            return shared_words.name_at("Staging", address - self.buffers)
        return super().name_of(address)

    def _table(self, values):
        array = np.array(values, dtype=np.int64)
        self._kept.append(array)
        return array.ctypes.data

    def _record(self, record, rows=0):
        return self._table(record.array(rows))

    def _over_mpi(self, node, words):
        size = self.size
        mpi, comm = MPI.at(self._record(MPI)), COMM.at(self._table(words))
        mpi.enter_round = rounds.enter_round_kernel.address
        mpi.hand_out = rounds.hand_out_kernel.address
        mpi.node, mpi.nodes, mpi.widest = node, 1, size
        mpi.staging, mpi.halves = node.buffers, node.buffers + halves_offset(size)
        half = (size * node.buffer_stride - halves_offset(size)) // 2
        mpi.half_bytes = half // LINE_BYTES * LINE_BYTES
        mpi.node_order, mpi.node_index = self._table(range(size)), self._table(range(size))
        mpi.node_starts, mpi.node_of = self._table([0, size]), self._table([0] * size)
        mpi.header, mpi.headers = self._record(HEADER), self._record(HEADER)
        mpi.counts, mpi.reasons = self._table([0] * 4 * size), self._table([0] * size)
        mpi.report_out, mpi.message_in = self._record(MESSAGE, size), self._record(MESSAGE, size)
        mpi.query_out = self._record(MESSAGE)
        mpi.sends, mpi.answered = self._table([0]), self._table([0])
        comm.mpi = mpi
        comm.barrier_body = barrier.barrier_body.address
        comm.broadcast_body = broadcast.broadcast_body.address
        comm.allreduce_body = allreduce.allreduce_body.address
        comm.allgatherv_body = allgatherv.allgatherv_body.address
        comm.abandon_body = messages.abandon_body.address
        return comm


assert "mpi4py" not in sys.modules  # the stand-ins are for a process without MPI
