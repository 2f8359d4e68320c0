"""A work that ranks on threads share, over a region of their world."""

import numpy as np
from cobre_kernels.collective.work import CLAIMS
from cobre_kernels.machine.record import peek_now

from cobre_comm.contract.work import CLAIMS_WORDS, Work
from tests.kernels import shared_words
from tests.kernels.threads.world import World

PARITIES = 2


class Works(World):
    """Ranks of a communicator; the first region has the counts of claims."""

    def name_of(self, address):
        """Return the name of the shared word at an address, or "data"."""
        inside = address - peek_now(self.regions._regions.rows[0].begin)
        if 0 <= inside < PARITIES * CLAIMS.size_bytes:
            return shared_words.name_at("Claims", inside % CLAIMS.size_bytes)
        return super().name_of(address)


class Owner:
    """The part of a rank's communicator that ``Work`` uses."""

    def __init__(self, comm, synchronise):
        self._address, self.is_leader = comm.address, comm.rank == 0
        self._comm, self._synchronise = comm, synchronise

    def _check_usable(self):
        pass

    def _agree_on(self, signature, length):
        self._synchronise(self._comm, length)

    def _seconds(self, ticks):
        return ticks


class Counts:
    """The region that holds the counts of claims."""

    _identity = 0

    def __init__(self, memory):
        self._memory = memory

    def as_slice(self):
        return self._memory[:CLAIMS_WORDS]


def work_of(comm, count, memory, synchronise):
    """Return the work of one rank; ``memory`` holds its node's counts of claims."""
    claimed = np.zeros(count, dtype=np.int64)
    return Work(Owner(comm, synchronise), [comm.size], 0, Counts(memory), claimed)
