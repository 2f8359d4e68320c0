"""The private memory of a communicator over several nodes: its table and what that points to."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import TYPE_CHECKING, cast

import numpy as np
from cobre_kernels import layout
from cobre_kernels.atomics import WORD_BYTES
from cobre_kernels.mpi import farewell, news, shared, table
from cobre_kernels.mpi.allgatherv import allgatherv_kernel
from cobre_kernels.mpi.allreduce import allreduce_kernel
from cobre_kernels.mpi.barrier import synchronise_kernel
from cobre_kernels.mpi.broadcast import broadcast_kernel
from numpy.typing import NDArray

from cobre_comm.backends.kernel_backend import KernelSet
from cobre_comm.backends.mpi import library
from cobre_comm.backends.mpi.node_order import NodeOrder

if TYPE_CHECKING:
    from mpi4py import MPI

    from cobre_comm.backends.mpi.owned import OwnedObjects

KERNELS = KernelSet(
    synchronise_kernel, broadcast_kernel, allreduce_kernel, allgatherv_kernel, shared.KERNELS
)
LOOK_S = 0.0005
LARGEST_HALF_BYTES = 2**30  # MPI counts it in a C int
ALL_KERNELS = [*KERNELS.all(), *farewell.KERNELS]


class MpiMemory:
    """What the kernels need to know of MPI; it lives as long as MPI may write to it.

    Parameters
    ----------
    state : ndarray of int64
        Of the whole communicator.
    local : ndarray of int64
        The state of this rank among those of its node, already attached to their segment.
    owned : OwnedObjects
        Its communicators; gets a further one, of the leaders.
    places : NodeOrder
        Which ranks are where.
    """

    def __init__(
        self,
        state: NDArray[np.int64],
        local: NDArray[np.int64],
        owned: OwnedObjects,
        places: NodeOrder,
    ) -> None:
        self._arrays: list[NDArray[np.int64]] = [state, local]
        self._state_address = int(state.ctypes.data)
        self._tell_left = farewell.tell_left_kernel.call
        self._world, self._places = owned.world, places
        self._table = np.zeros(table.TABLE_BYTES // WORD_BYTES, dtype=np.int64)
        size, nodes = owned.world.size, places.nodes
        self._set(table.LOCAL, local.ctypes.data)
        self._describe_library(owned)
        self._describe_places(places)
        self._set(table.HEAD, self._words(table.HEAD_BYTES))
        self._set(table.HEADS, self._words(nodes * table.HEAD_BYTES))
        self._set(table.COUNTS, self._words(4 * size * WORD_BYTES))
        self._set(table.REASONS, self._words(size * WORD_BYTES))
        self._set(table.NEWS_OUT, self._words(news.notice_bytes(size)))
        self._set(table.NEWS_IN, self._words(news.notice_bytes(size)))
        self._set(table.SMALL_OUT, self._words(news.SMALL_BYTES))
        self._set(table.NEWS_REQUESTS, self._words(nodes * WORD_BYTES))
        self._set(table.HEARD, self._words(nodes * WORD_BYTES))
        self._use_stage(local, owned.world, places)
        for word in (layout.TIMEOUT_NS, layout.SPIN_NS, layout.YIELD_NS):
            state[word // WORD_BYTES] = local[word // WORD_BYTES]
        state[layout.LINKS // WORD_BYTES] = self._table.ctypes.data
        owned.receive_goodbyes = self._receive_goodbyes

    def _set(self, offset: int, value: int) -> None:
        self._table[offset // WORD_BYTES] = value

    def _words(self, count_bytes: int) -> int:
        array = np.zeros(-(-count_bytes // WORD_BYTES), dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _array(self, values: NDArray[np.int64]) -> int:
        array = np.ascontiguousarray(values, dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _describe_library(self, owned: OwnedObjects) -> None:
        from mpi4py import MPI

        world = owned.world
        leads = owned.node.rank == 0
        leaders = world.Split(0 if leads else MPI.UNDEFINED, key=world.rank)
        self._set(table.HANDLE_BYTES, MPI._sizeof(MPI.Comm))
        self._set(table.WORLD, _handle(world))
        self._set(table.BYTE, _handle(MPI.BYTE))
        self._set(table.IN_PLACE, int(MPI.IN_PLACE))
        self._set(table.ANY_SOURCE, MPI.ANY_SOURCE)
        self._set(table.STATUS, self._words(MPI._sizeof(MPI.Status)))
        self._set(table.HAS_LARGE, 1 if library.has_large_counts() else 0)
        if leads:
            leaders.Set_errhandler(MPI.ERRORS_RETURN)
            self._set(table.LEADERS, _handle(leaders))
            owned.comms.insert(0, cast(MPI.Intracomm, leaders))
        world.Set_errhandler(MPI.ERRORS_RETURN)

    def _describe_places(self, places: NodeOrder) -> None:
        size = len(places.order)
        place_of, node_of = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        place_of[places.order] = np.arange(size)
        node_of[places.order] = np.repeat(np.arange(places.nodes), np.diff(places.starts))
        self._set(table.NODES, places.nodes)
        self._set(table.NODE, places.node)
        self._set(table.WIDEST, int(np.diff(places.starts).max()))
        self._set(table.ORDER, self._array(places.order))
        self._set(table.PLACES, self._array(place_of))
        self._set(table.STARTS, self._array(places.starts))
        self._set(table.NODE_OF, self._array(node_of))

    def _use_stage(self, local: NDArray[np.int64], world: MPI.Intracomm, places: NodeOrder) -> None:
        """Take the slots of the node's segment for the stage; all nodes use as much."""
        from mpi4py import MPI

        words = local[[layout.BUFFERS // WORD_BYTES, layout.BUFFER_STRIDE // WORD_BYTES]]
        stage, stride = (int(word) for word in words)
        room = len(places.here) * stride - table.halves_offset(world.size)
        half_bytes = min(room // 2 // layout.LINE_BYTES * layout.LINE_BYTES, LARGEST_HALF_BYTES)
        self._set(table.STAGE, stage)
        self._set(table.HALF_BYTES, world.allreduce(half_bytes, MPI.MIN))

    def farewell(self, *, is_broken: bool) -> bool:
        """Tell the others that this rank has left; whether everything may be freed one day."""
        if is_broken:
            return False  # it has said so already, and a request may still be under way
        self._tell_left(self._state_address)
        return True

    def _receive_goodbyes(self, limit_s: float) -> bool:
        """Receive the notices of leave that no wait has read: each other leader has sent one.

        A number of a communicator may be used again once it is freed, and so would they be.
        """
        from mpi4py import MPI

        if self._table[table.LEADERS // WORD_BYTES] == 0:
            return True
        missing = self._places.nodes - 1 - int(self._table[table.NEWS_COUNT // WORD_BYTES])
        notice = bytearray(news.notice_bytes(self._world.size))
        deadline = time.monotonic() + limit_s
        while missing > 0:
            if self._world.Iprobe(source=MPI.ANY_SOURCE, tag=news.TAG):
                self._world.Recv([notice, MPI.BYTE], source=MPI.ANY_SOURCE, tag=news.TAG)
                # A leave is the last that a leader sends; what it asked before has no answer now.
                sort = int.from_bytes(notice[news.SORT : news.SORT + WORD_BYTES], sys.byteorder)
                missing -= sort == news.NOTICE
            elif time.monotonic() > deadline:
                return False
            else:
                time.sleep(LOOK_S)
        return True


def _handle(thing: MPI.Comm | MPI.Datatype) -> int:
    """Return a handle as a signed word."""
    from mpi4py import MPI

    return ctypes.c_int64(MPI._handleof(thing)).value


def least_buffer_bytes(places: NodeOrder) -> int:
    """Return how much collective buffer a rank must have for the stage of the smallest node."""
    size, ranks = len(places.order), np.diff(places.starts)
    half_bytes = table.least_half_bytes(size, places.nodes, int(ranks.max()))
    stage_bytes = table.halves_offset(size) + 2 * (half_bytes + layout.LINE_BYTES)
    return int(-(-stage_bytes // int(ranks.min())))
