"""The ranks of one node over MPI, as plain Python on threads, with an MPI that has no other node.

The stand-ins for MPI's calls do what the real ones do for a single leader, and note as written
whatever memory of the stage the real ones may write.
"""

import ctypes
import sys

import numpy as np
from cobre_kernels import dtypes, fold, layout, status
from cobre_kernels.kind import BARRIER
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.allgatherv import allgatherv_kernel
from cobre_kernels.mpi.allreduce import allreduce_kernel
from cobre_kernels.mpi.barrier import synchronise_kernel
from cobre_kernels.mpi.broadcast import broadcast_kernel

from tests.kernels.shared_words_recorder import World, compare, copy_bytes, recorder

LENGTHS = (3, 300, 2500, 7000)  # of float64: gathered and in stripes, one round and several


def _ints(address):
    return (ctypes.c_int32 * 1).from_address(address)[0]


def _begin_allgather(mpi, head, heads, count, request):
    ctypes.memmove(heads, head, count)
    return 0


def _test(mpi, request):
    ctypes.c_int64.from_address(mpi + table.FLAG).value = 1
    return 0


def _probe(mpi, tag):
    ctypes.c_int64.from_address(mpi + table.FLAG).value = 0
    return 0


def _allgatherv(mpi, send, send_bytes, recv, counts, displs):
    with recorder.lock:
        recorder.data("store", "copy", recv + _ints(displs), _ints(counts))
    return 0


def _alltoallv(mpi, send, send_counts, send_displs, recv, recv_counts, recv_displs):
    copy_bytes(recv + _ints(recv_displs), send + _ints(send_displs), _ints(send_counts))
    return 0


def _bcast(mpi, buffer, count, root):
    with recorder.lock:
        recorder.data("store", "copy", buffer, count)
    return 0


STAND_INS = {
    "begin_allgather": _begin_allgather,
    "test": _test,
    "probe": _probe,
    "allgatherv": _allgatherv,
    "alltoallv": _alltoallv,
    "bcast": _bcast,
    "begin_send": lambda *arguments: 0,
}


class Node(World):
    """The ranks of a node; their states in :attr:`states` are those of the node."""

    def __init__(self, size, **world):
        super().__init__(size, **world)
        for name, function in STAND_INS.items():
            setattr(calls, name, function)
        self._kept = []
        self.locals = self.states
        self.states = [self._state(local) for local in self.locals]

    def _words(self, values):
        array = np.array(values, dtype=np.int64)
        self._kept.append(array)
        return array.ctypes.data

    def _state(self, local):
        size, word = self.size, layout.WORD_BYTES
        stage, stride = (int(local[w // word]) for w in (layout.BUFFERS, layout.BUFFER_STRIDE))
        recorder.stage = stage
        half = (size * stride - table.halves_offset(size)) // 2 // layout.LINE_BYTES
        mpi = np.zeros(table.TABLE_BYTES // word, dtype=np.int64)
        words = {
            table.LOCAL: local.ctypes.data,
            table.NODES: 1,
            table.WIDEST: size,
            table.STAGE: stage,
            table.HALF_BYTES: half * layout.LINE_BYTES,
            table.ORDER: self._words(range(size)),
            table.PLACES: self._words(range(size)),
            table.STARTS: self._words([0, size]),
            table.NODE_OF: self._words([0] * size),
            table.HEAD: self._words([0] * (table.HEAD_BYTES // word)),
            table.HEADS: self._words([0] * (table.HEAD_BYTES // word)),
            table.COUNTS: self._words([0] * (4 * size)),
            table.REASONS: self._words([0] * size),
            table.NEWS_OUT: self._words([0] * (3 + size)),
            table.NEWS_IN: self._words([0] * (3 + size)),
            table.NEWS_REQUESTS: self._words([0]),
            table.HEARD: self._words([0]),
            table.SMALL_OUT: self._words([0, 0]),
        }
        for offset, value in words.items():
            mpi[offset // word] = value
        state = local.copy()
        state[layout.LINKS // word] = mpi.ctypes.data
        self._kept.append(mpi)
        return state


def values(rank, length):
    return np.arange(length, dtype=np.float64) * (rank + 2) + rank


def rounds(rank, state):
    """Every collective in turn, so that each half of the stage is used by each."""
    size = int(ctypes.c_int64.from_address(state + layout.COMM_SIZE).value)
    for turn, length in enumerate((*LENGTHS, *LENGTHS)):
        send, recv = values(rank, length), np.full(length, np.nan)
        outcome = allreduce_kernel.call(
            state, send.ctypes.data, length, recv.ctypes.data, length, 8, dtypes.FLOAT64, fold.SUM
        )
        assert outcome == status.OK
        compare(recv, sum(values(r, length) for r in range(size)))
        root = turn % size
        buffer = values(root, length) if rank == root else np.full(length, np.nan)
        arguments = (buffer.ctypes.data, buffer.nbytes, dtypes.FLOAT64, root)
        assert broadcast_kernel.call(state, *arguments) == status.OK
        compare(buffer, values(root, length))
        assert synchronise_kernel.call(state, BARRIER, 0) == status.OK
        counts = np.array([length + r for r in range(size)])
        displs = np.cumsum(counts) - counts
        send, recv = values(rank, counts[rank]), np.full(counts.sum(), np.nan)
        outcome = allgatherv_kernel.call(
            state, send.ctypes.data, len(send), recv.ctypes.data, len(recv), 8, dtypes.FLOAT64,
            counts.ctypes.data, displs.ctypes.data, size, size,
        )  # fmt: skip
        assert outcome == status.OK
        expected = np.concatenate([values(r, counts[r]) for r in range(size)])
        compare(recv, expected)


def node_disagreement(rank, state):
    assert synchronise_kernel.call(state, BARRIER, 0) == status.OK
    assert synchronise_kernel.call(state, BARRIER, rank % 2) == status.DISAGREE


assert "mpi4py" not in sys.modules  # the stand-ins are for a process without MPI
