"""How a rank waits for other ranks: how long at most, and whether it keeps its core meanwhile.

This file writes into the record of a new communicator the timeout, and how long a wait spins and
yields. ``system/cores.py`` decides whether every rank of a machine has a core. If so, a wait spins;
on a machine with fewer cores a spin would keep another rank from running.
"""

from __future__ import annotations

import os

from cobre_kernels.collective.comm import LEADERS, RANKS
from cobre_kernels.machine import libc
from cobre_kernels.machine.record import View
from cobre_kernels.shm import wait

from cobre_comm.backends.comm_memory import describe_pace
from cobre_comm.config import chosen
from cobre_comm.system.cores import spin_us

YIELD_US = 200.0  # after the spin, until the first futex
SPIN_BETWEEN_NODES_US = 50.0  # longer than in a node, because a byte takes longer between nodes
YIELD_BETWEEN_NODES_US = 50.0  # after the spin, until the first poll
PORTABLE_VARIABLES = "COBRE_TEST_PORTABLE_WAIT COBRE_COMM_PORTABLE_WAIT"


def wait_for_ranks(comm: View, ranks: int, timeout_s: float, chosen_us: float | None) -> None:
    """Write into a record how this rank waits for the ranks of its node.

    ``ranks`` is the number of ranks of the node. A wait for a live rank ends after ``timeout_s``
    seconds; 0 means no limit. A wait spins for ``chosen_us`` microseconds, if the user has chosen
    this time.
    """
    comm.timeout_ns = int(timeout_s * libc.NS_PER_S)
    pace = describe_pace(comm, RANKS, wait.block_kernel, wait.look_around_kernel)
    pace.spin_ns = int(spin_us(ranks, chosen_us) * 1000)
    pace.yield_ns = int(YIELD_US * 1000)
    portable = os.environ.get(chosen(os.environ, PORTABLE_VARIABLES), "0") != "0"
    comm.portable = portable or not libc.HAS_FUTEX


def wait_for_leaders(comm: View, ranks: int, chosen_us: float | None) -> None:
    """Write into a record how a leader waits for bytes of other leaders, if every rank leads."""
    pace = comm.paces[LEADERS]
    pace.spin_ns = int(spin_us(ranks, chosen_us, SPIN_BETWEEN_NODES_US) * 1000)
    pace.yield_ns = int(YIELD_BETWEEN_NODES_US * 1000)
