"""MPI objects of our communicators, and when they are freed: theory of operation.

In MPI, freeing an object is collective; closing one of our communicators is not. So the MPI objects
of a closed communicator are freed at the next collective moment. One such moment is when another
communicator is made over the same parent. Another is when the parent is freed: then MPI calls the
delete callback of an attribute.

================= ================================ ==============================================
state             entered                          left
================= ================================ ==============================================
MADE              ``register``: a child of the     this rank closes the communicator: CLOSED HERE;
                  communicator it was made over    it fails: BROKEN
CLOSED HERE       ``is_closed`` is set             at a collective moment, all ranks have closed
                                                   it: CLOSED EVERYWHERE; MPI is finalized first:
                                                   BEFORE FINALIZE
CLOSED EVERYWHERE an allreduce of ``is_closed``    all ranks receive every goodbye within
                                                   GOODBYE_S: FREED; else CLOSED HERE, until the
                                                   next collective moment
FREED             after its own closed children    never
BEFORE FINALIZE   MPI_Finalize begins              all goodbyes, and then all ranks, arrive within
                                                   GOODBYE_S: FREED; else BROKEN
BROKEN            a message may be under way       never: MPI_Finalize ends it
================= ================================ ==============================================

MPI_Finalize is a collective moment too. If mpi4py calls it at the end of the process, an ``atexit``
function runs before. If the program calls ``MPI.Finalize()``, a delete callback of an attribute of
COMM_SELF runs before (MPI 4.1, 11.2.4 "Allowing User Functions at MPI Finalization").
"""

from __future__ import annotations

import atexit
import functools
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cobre_comm.backends.mpi.group import all_come
from cobre_comm.system.running_time import running_s

if TYPE_CHECKING:
    from mpi4py import MPI

GOODBYE_S = 5.0  # other ranks may reach their end later than this rank, or never


_owned: list[OwnedObjects] = []  # in the order of making, the same on all ranks that share them
owners: weakref.WeakSet[Any] = weakref.WeakSet()  # our communicators, unusable after MPI_Finalize


class OwnedObjects:
    """The MPI communicators of one communicator of ours."""

    leaders: MPI.Intracomm | None = None  # the ranks that lead in this rank's lane

    def __init__(self, world: MPI.Intracomm, node: MPI.Intracomm) -> None:
        self.world = world
        self.comms: list[MPI.Intracomm] = [node, world]
        self.node = node
        # The state CLOSED HERE: this rank agrees that the objects are freed.
        self.is_closed = False
        # Receives the goodbyes of the other ranks within a number of seconds; returns whether all
        # have arrived.
        self.receive_goodbyes: Callable[[float], bool] = lambda limit_s: True

    def split_off_leaders(self, lane: int | None, node: int) -> None:
        """Make the communicator of the leaders of each lane, in the order of nodes; collective.

        A rank that leads in no lane passes None.
        """
        from mpi4py import MPI

        leaders = self.world.Split(MPI.UNDEFINED if lane is None else lane, key=node)
        if lane is not None:
            self.leaders = cast("MPI.Intracomm", leaders)
            self.comms.insert(0, self.leaders)

    def keep(self, *memory: object) -> None:
        """Keep memory alive that MPI may still write to."""
        self._memory = memory

    def free(self) -> None:
        """Free everything; collective."""
        _owned.remove(self)
        parts = children_of(self.world)
        free_closed(parts, self.world)
        if parts:  # some parts are open, so ``world`` stays until MPI_Finalize
            self.comms.remove(self.world)
        children = children_of(self.node)
        free_closed(children, self.node)
        if children:  # ``node`` is the parent of these, and is freed with the last of them
            cast(OwnedObjects, children[-1]).comms.append(self.node)
            self.comms.remove(self.node)
        self.free_handles()

    def free_handles(self) -> None:
        """Free the communicators themselves, but not their children; collective."""
        for comm in self.comms:
            comm.Free()


class OwnedPart:
    """The MPI objects of one split; every rank of the parent lists one such part for each split.

    ``comm`` is the communicator that MPI has split off for the part; None for color None.
    """

    def __init__(self, comm: MPI.Intracomm | None) -> None:
        self._made = [] if comm is None else [one for one in _owned if one in children_of(comm)]
        for one in self._made:
            one.comms.append(cast("MPI.Intracomm", comm))  # is freed with the other objects

    @property
    def is_closed(self) -> bool:
        """Whether this rank has closed every communicator that was made over the part."""
        return all(one.is_closed for one in self._made)

    def receive_goodbyes(self, limit_s: float) -> bool:
        """Receive the goodbyes of the other ranks; return whether all have arrived."""
        return all(one.receive_goodbyes(limit_s) for one in self._made)

    def leave_to_finalize(self) -> None:
        """Become BROKEN, because another rank may have no objects to free with this rank."""
        for one in self._made:
            one.is_closed = False

    def free(self) -> None:
        """Free everything; all ranks of the parent call this together."""
        for one in self._made:
            one.free()


Child = OwnedObjects | OwnedPart


def children_of(parent: MPI.Intracomm) -> list[Child]:
    """Return the children that were made over ``parent``, which keeps the list as an attribute."""
    if parent.Get_attr(_children_key()) is None:
        parent.Set_attr(_children_key(), [])
    return cast(list[Child], parent.Get_attr(_children_key()))


def free_closed(children: list[Child], over: MPI.Intracomm) -> None:
    """Free the children that all ranks have closed; collective over ``over``."""
    closed = _where_all(over, children, [one.is_closed for one in children])
    deadline = running_s() + GOODBYE_S
    received = [one.receive_goodbyes(max(deadline - running_s(), 0.0)) for one in closed]
    for one in _where_all(over, closed, received):
        children.remove(one)
        one.free()


def _where_all(over: MPI.Intracomm, children: list[Child], flags: list[bool]) -> list[Child]:
    """Return the children of which the flag is set on every rank; collective over ``over``."""
    if not children:
        return []
    from mpi4py import MPI

    everywhere = np.array(flags, dtype=np.int32)
    over.Allreduce(MPI.IN_PLACE, everywhere, MPI.MIN)
    return [one for one, is_set in zip(children, everywhere, strict=True) if is_set]


def register(owned: OwnedObjects, parent: MPI.Intracomm) -> None:
    """Free the closed children of ``parent``, then add a new child."""
    children = children_of(parent)
    free_closed(children, owned.world)  # not over ``parent``, which may carry the caller's messages
    children.append(owned)
    _owned.append(owned)
    _watch_finalize()


@functools.cache
def _children_key() -> int:
    from mpi4py import MPI

    def deleted(comm: MPI.Comm, key: int, children: list[Child]) -> None:
        """Free the closed children of a parent that is being freed, which is collective."""
        left = [one for one in _owned if one in children]
        if left:
            free_closed([*left], left[0].world)

    return MPI.Comm.Create_keyval(delete_fn=deleted)


@functools.cache
def _watch_finalize() -> None:
    """Make sure that everything is freed before mpi4py or the program finalizes MPI."""
    from mpi4py import MPI

    def deleted(comm: MPI.Comm, key: int, value: object) -> None:
        _before_finalize()

    key = MPI.Comm.Create_keyval(delete_fn=deleted)
    MPI.COMM_SELF.Set_attr(key, True)
    atexit.register(_at_exit, os.getpid())


def _at_exit(pid: int) -> None:
    if os.getpid() == pid:  # in a forked child MPI belongs to the parent
        _before_finalize()


def _before_finalize() -> None:
    """Close the open communicators and free the closed ones; once."""
    for owner in list(owners):
        owner._become_finalized()
    last, _owned[:] = list(_owned), []
    deadline = running_s() + GOODBYE_S
    for one in last:
        left_s = max(deadline - running_s(), 0.0)
        if one.is_closed and one.receive_goodbyes(left_s) and all_come(one.world, left_s):
            one.free_handles()
