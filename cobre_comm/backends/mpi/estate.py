"""MPI objects of our communicators, and when they are freed.

Freeing is collective in MPI, closing a communicator of ours is not. So what a closed one leaves is
freed at the next moment when all its ranks are in a collective call anyway: when another one is
made over the same parent, or that parent is freed. What is left then is freed right before
MPI_Finalize, which is collective itself: in an ``atexit`` function when mpi4py finalizes MPI at the
end of the process, in a delete callback of an attribute of COMM_SELF when the program calls
``MPI.Finalize()`` (MPI 4.1, 11.2.4 "Allowing User Functions at MPI Finalization").
"""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI

    from cobre_comm.backends.mpi.backend import MpiBackend

LOOK_S = 0.0005
LAST_NEWS_S = 5.0  # other ranks reach their end a little later, or never

_in_order: list[Estate] = []  # of their making, which is the same on all ranks that share them
_backends: weakref.WeakSet[MpiBackend] = weakref.WeakSet()


class Estate:
    """The communicators and windows behind one communicator of ours.

    Attributes
    ----------
    is_done : bool
        Closed here, in good order: as far as this rank is concerned it may be freed. A broken
        communicator never is: something may still be under way in it.
    drain : callable
        Receives what the other ranks have sent at their closing, for so many seconds at most;
        tells whether everything has come.
    """

    def __init__(self, world: MPI.Intracomm, node: MPI.Intracomm) -> None:
        self.world = world
        self.comms: list[MPI.Intracomm] = [node, world]
        self.windows: list[MPI.Win] = []
        self.node = node
        self.is_done = False
        self.drain: Callable[[float], bool] = lambda limit_s: True

    def keep(self, *memory: object) -> None:
        """Keep what MPI may still write to."""
        self._memory = memory

    def free(self) -> None:
        """Free everything; collective."""
        children = family_of(self.node)
        reap(children, self.node)
        if children:  # the node's communicator is their parent, and goes with the last of them
            children[-1].comms.append(self.node)
            self.comms.remove(self.node)
        for window in self.windows:
            window.Free()
        for comm in self.comms:
            comm.Free()


def family_of(parent: MPI.Intracomm) -> list[Estate]:
    """Return the list of the estates made over ``parent``, which keeps it as an attribute."""
    if parent.Get_attr(_family_key()) is None:
        parent.Set_attr(_family_key(), [])
    return cast(list[Estate], parent.Get_attr(_family_key()))


def reap(family: list[Estate], over: MPI.Intracomm) -> None:
    """Free the estates that all ranks have closed; collective over ``over``."""
    if not family:
        return
    from mpi4py import MPI

    done = np.array([estate.is_done for estate in family], dtype=np.int32)
    over.Allreduce(MPI.IN_PLACE, done, MPI.MIN)
    for estate in [e for e, agreed in zip(family, done, strict=True) if agreed]:
        family.remove(estate)
        _in_order.remove(estate)
        estate.drain(float("inf"))  # all ranks have closed it, so all notices are on their way
        estate.free()


def register(estate: Estate, parent: MPI.Intracomm, backend: MpiBackend) -> None:
    """Keep account of what was made over ``parent``, after reaping its elder siblings."""
    family = family_of(parent)
    reap(family, estate.world)  # the parent is the caller's, and so is its traffic
    family.append(estate)
    _in_order.append(estate)
    _backends.add(backend)
    _watch_finalize()


@functools.cache
def _family_key() -> int:
    from mpi4py import MPI

    def deleted(comm: MPI.Comm, key: int, family: list[Estate]) -> None:
        """The parent is being freed, which is collective, so what it has left can be."""
        left = [estate for estate in family if estate in _in_order]
        if left:
            reap(left, left[0].world)

    return MPI.Comm.Create_keyval(delete_fn=deleted)


@functools.cache
def _watch_finalize() -> None:
    """Have everything freed before MPI is finalized, whoever does that."""
    from mpi4py import MPI

    def deleted(comm: MPI.Comm, key: int, value: object) -> None:
        _before_finalize()

    owner = os.getpid()
    key = MPI.Comm.Create_keyval(delete_fn=deleted)
    MPI.COMM_SELF.Set_attr(key, True)
    atexit.register(_at_exit, owner)


def _at_exit(owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child, whose MPI is its parent's
        _before_finalize()


def _before_finalize() -> None:
    """Close what is open, and free what is whole; once."""
    for backend in list(_backends):
        backend.finalized()
    estates, _in_order[:] = list(_in_order), []
    deadline = time.monotonic() + LAST_NEWS_S
    for estate in estates:
        left_s = max(deadline - time.monotonic(), 0.0)
        if estate.is_done and estate.drain(left_s) and _all_are_here(estate.world, deadline):
            for window in estate.windows:
                window.Free()
            for comm in estate.comms:
                comm.Free()


def _all_are_here(world: MPI.Intracomm, deadline: float) -> bool:
    """Whether the other ranks have come to their end in good order too."""
    request = world.Ibarrier()
    while not request.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True
