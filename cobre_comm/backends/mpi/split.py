"""Split an MPI communicator by colors, in step with the parent: theory of operation.

MPI makes communicators by calls that block until all ranks have called, and that no signal ends. So
a second thread makes these calls. Meanwhile the rank itself stays in step with the ranks of the
parent: an interrupt of one rank, or its end, ends the split on all other ranks. If the thread waits
in MPI for a lost rank, it waits for ever. If MPI allows calls from one thread alone, the rank
itself makes the calls, and cannot stay in step.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar, cast

from cobre_comm.backends.mpi.group import await_all
from cobre_comm.backends.mpi.owned import children_of, free_closed
from cobre_comm.backends.nodes.configs import nodes_of_part
from cobre_comm.backends.split import LOOK_S, Part
from cobre_comm.config import MpiConfig

if TYPE_CHECKING:
    from mpi4py import MPI


T = TypeVar("T")


def beside(make: Callable[[], T], look: Callable[[], None]) -> T:
    """Run ``make`` in a second thread and return its result; meanwhile call ``look``."""
    from mpi4py import MPI

    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return make()
    made = Future[T]()

    def run() -> None:
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
        if thread.is_alive():
            look()
    return made.result()


def config_of_part(config: MpiConfig, part: Part, buffer_bytes: int) -> MpiConfig:
    """Return a part's configuration: nodes and buffers of each rank are those of the parent."""
    nodes = nodes_of_part(config.pretend_nodes, part)
    return dataclasses.replace(config, pretend_nodes=nodes, buffer_bytes=buffer_bytes)


def split_off(world: MPI.Intracomm, part: Part, timeout_s: float) -> MPI.Intracomm | None:
    """Return the communicator of a part; None for color None. Collective over ``world``.

    The communicators of earlier splits that all ranks have closed are freed first.
    """
    from mpi4py import MPI

    await_all(world, timeout_s)
    free_closed(children_of(world), world)
    comm = world.Split(part.leader if part.has_color else MPI.UNDEFINED, part.rank)
    return cast(MPI.Intracomm, comm) if part.has_color else None
