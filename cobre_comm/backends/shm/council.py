"""Call the roll of the survivors of one node, in the segment that they still have mapped.

============ ======================================= ==============================================
state        a rank                                  leaves it when
============ ======================================= ==============================================
ANSWERED     has its row in its seat, and then the   the call is decided: DECIDED
             number of the call in ``turn``          every other member has answered, holds its
                                                     record lock no more, or is AWAY; or the time
                                                     is over: PROPOSED
PROPOSED     has written a roll: who has answered    its exchange of ``decision`` succeeds, or
             by now; if the time is over, who lives  another one's has: DECIDED
             and has not
DECIDED      reads the roll of the rank that         its next call
             ``decision`` names, and the rows of it
============ ======================================= ==============================================

- *One roll.* The word ``decision`` changes from the call before to this call by a single
  compare-and-exchange, so only one rank can succeed with its roll.
- *Nobody waits for the dead.* A record lock ends with the process that holds it. A rank first asks
  whether another rank has answered, then whether that rank lives, and only then lists who has
  answered. So if a rank answers and dies, its answer is in the roll.
- *Two rows and two rolls of each rank are enough.* A rank answers call c + 2 after call c + 1 was
  decided. By then every other member has answered c + 1, and has read all that was decided in c.
- *A member that is late in c + 1* may not have read what was decided in c. In this case no call
  follows c + 1, and this member, still in c, reads the roll of c + 1 as the others do.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Collection

from cobre_kernels.machine import access
from cobre_kernels.shm import control

from cobre_comm.backends.shm.ownership import is_locked
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.backends.shrink import Council, Roll
from cobre_comm.config import ShmConfig
from cobre_comm.journal.shown import load, store
from cobre_comm.system.running_time import running_s

POLL_S = 0.0002
LONGEST_POLL_S = 0.005


class ShmCouncil(Council):
    """The survivors of the ranks of one segment.

    ``config`` has the number of ranks that have attached, and the time for an answer.
    """

    def __init__(self, segment: Segment, config: ShmConfig, variable: str) -> None:
        super().__init__(config.rank, config.size, config.timeout_s or math.inf, variable)
        self._segment = segment
        self._council = control.COUNCIL.at(segment.address + control.council_offset(self.size))

    def leave(self) -> None:
        """Answer no call any more, so that nobody waits for this rank."""
        # Release: pairs with the load of turn in _turn.
        store(self._council.seats[self.rank].turn, control.AWAY)

    def _call_roll(self, row: bytes) -> Roll:
        ctypes.memmove(self._row_of(self.rank), row, len(row))
        # Release: pairs with the load in _turn, and publishes the row.
        store(self._council.seats[self.rank].turn, self.call)
        until = running_s() + self.limit_s
        pause_s = POLL_S
        while (decision := self._decision()) >> control.DECISION_BITS < self.call:
            waited_for = [r for r in self.members if not self._has_answered(r) and self._lives(r)]
            is_over = running_s() >= until
            if not waited_for or is_over:
                self._propose(decision, waited_for)
                continue
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)
        # The decision may be of the next call, if the other ranks have waited in that call for this
        # rank until the timeout.
        self.call = decision >> control.DECISION_BITS
        proposer = decision & control.TIME_OVER - 1
        roll = self._roll_of(proposer)
        if decision & control.TIME_OVER:
            return self.time_over(roll)
        return Roll({rank: ctypes.string_at(self._row_of(rank), len(row)) for rank in roll})

    def _propose(self, before: int, waited_for: Collection[int]) -> None:
        answered = [rank for rank in self.members if self._has_answered(rank)]
        late = set(waited_for).difference(answered)
        bits = sum(1 << rank for rank in late or answered)
        words = bits.to_bytes(control.roll_bytes(self.size), "little")
        ctypes.memmove(self._roll_at(self.rank), words, len(words))
        time_over = control.TIME_OVER if late else 0
        decision = self.call << control.DECISION_BITS | time_over | self.rank
        # Releases the roll: pairs with the load in _decision, and with a later exchange.
        access.exchange_word_kernel.call(self._council.decision, before, decision)

    def _decision(self) -> int:
        # Acquire: pairs with the exchange in _propose.
        return load(self._council.decision)

    def _turn(self, rank: int) -> int:
        # Acquire: pairs with the stores in leave and _call_roll.
        return load(self._council.seats[rank].turn)

    def _has_answered(self, rank: int) -> bool:
        return self._turn(rank) >= self.call

    def _lives(self, rank: int) -> bool:
        return is_locked(self._segment.fd, rank) and self._turn(rank) != control.AWAY

    def _row_of(self, rank: int) -> int:
        parity = self.call & 1
        return int(self._council.seats[rank].rows) + parity * int(control.ROW_BYTES)

    def _roll_at(self, rank: int) -> int:
        offset: int = control.roll_offset(self.size, rank, self.call)
        return self._segment.address + offset

    def _roll_of(self, rank: int) -> list[int]:
        words = ctypes.string_at(self._roll_at(rank), control.roll_bytes(self.size))
        bits = int.from_bytes(words, "little")
        return [member for member in range(self.size) if bits >> member & 1]
