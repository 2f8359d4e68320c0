"""Continue after a rank is lost: theory of operation.

No collective of a broken communicator works any more, so its survivors talk by *roll calls*. In a
roll call every member gives one row of bytes, and waits until each other member has answered, or
can no longer answer. One member proposes a roll, which says who has answered. One proposal is
decided, and all members that live get the rows of the decided roll. No two survivors get different
rolls, whichever ranks die, and whenever they die. A rank that is not in a roll is no member from
then on.

========= =================================================== =====================================
step      all members                                         a roll that lacks a member
========= =================================================== =====================================
ASSEMBLE  call the roll: who has answered is a member         is the result
MAKE      make the communicator of the members as ``split``   back to ASSEMBLE: what has been made
          makes one; members agree by further roll calls      is dropped
DONE      return the communicator; all of its ranks have      (there is no further call)
          answered the last call of MAKE
========= =================================================== =====================================

After the last call of MAKE, all survivors return, or none does. If a rank dies later, the next
collective of the new communicator reports the loss.

In two cases no further call follows, and every survivor raises the same error. Either a member
lives and does not answer within the timeout, or the network has fallen into parts, and this part is
too small (:func:`may_go_on`). ``shm/council.py`` calls the roll in the old segment,
``tcp/council.py`` over sockets. Each of these two files has a table of states;
``docs/design/shrink.md`` describes both.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.split import Part
from cobre_comm.errors import CollectiveFailed, named

SHRINK = "shrink"  # the operation that errors name

T = TypeVar("T")


class MemberLost(Exception):
    """A roll lacks a member; every survivor raises this exception in the same call."""


class Roll(NamedTuple):
    """What a roll call has decided; the same on every survivor."""

    rows: Mapping[int, bytes]  # by rank: the rows of all members that have answered
    problem: str = ""  # why no further call is possible; "" if a call is possible
    missing: Collection[int] = ()  # the ranks that make further calls impossible


class Council(Group):
    """The survivors of a broken communicator: a group as long as none of its members is lost.

    Ranks keep the numbers that they had in the broken communicator. In the result of
    ``gather_rows``, the rows of lost ranks are zeros.

    ``size`` is the number of ranks of the broken communicator. A member that lives has ``limit_s``
    to answer; ``variable`` is the environment variable that raises this limit.
    """

    def __init__(self, rank: int, size: int, limit_s: float = math.inf, variable: str = "") -> None:
        self.rank, self.size = rank, size
        self.limit_s, self._variable = limit_s, variable
        self.members = tuple(range(size))
        self.call = 0
        self.has_failed = False

    @abc.abstractmethod
    def _call_roll(self, row: bytes) -> Roll:
        """Answer call ``self.call`` with a row; return the decided roll, the same for all."""

    def leave(self) -> None:  # a council of one has nothing to close
        """Answer no more calls, so that nobody waits for this rank."""

    def assemble(self) -> tuple[int, ...]:
        """Return the ranks that answer a call; from now on these ranks are the members."""
        self.members = tuple(sorted(self._decide(b"")))
        return self.members

    def agree(self, value: int) -> int:
        """Return the smallest of the values of all members; collective."""
        rows = self.gather_rows(np.array([value], dtype=np.int64))
        return int(rows[list(self.members)].min())

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each member, all of one length and dtype; collective.

        ``MemberLost`` is raised on all survivors if a member is lost.
        """
        given = self._decide(row.tobytes())
        if len(given) < len(self.members):
            raise MemberLost
        rows = np.zeros((self.size, row.size), dtype=row.dtype)
        for rank, words in given.items():
            rows[rank] = np.frombuffer(words, dtype=row.dtype)
        return rows

    def _decide(self, row: bytes) -> Mapping[int, bytes]:
        self.call += 1
        rows, problem, missing = self._call_roll(row)
        if problem:
            raise self.failed(problem, missing)
        return rows

    def time_over(self, late: Collection[int]) -> Roll:
        """Return the roll of a call that some members, though alive, have not answered in time."""
        problem = (
            f"{named(late)} did not call shrink within {self.limit_s:g} s; all survivors call "
            f"it once they have CollectiveFailed, or raise {self._variable}"
        )
        return Roll({}, problem, late)

    def failed(self, problem: str, missing: Collection[int]) -> CollectiveFailed:
        """Return the error by which this rank gives up because of missing ranks."""
        self.has_failed = True
        return CollectiveFailed(SHRINK, message=problem, ranks=sorted(missing))


class Alone(Council):
    """The council of a communicator of one rank."""

    def _call_roll(self, row: bytes) -> Roll:
        return Roll({self.rank: row})


def shrink(
    council: Council, make: Callable[[Part, Council], tuple[T | None, Exception | None]]
) -> T:
    """Return a communicator of the survivors, in their old order.

    ``make`` makes the communicator of a part, and uses the council to agree. If it fails, it
    returns the error that all ranks of the part have agreed on.
    """
    try:
        while True:
            members = council.assemble()
            part = Part(members, members.index(council.rank), has_color=True)
            try:
                made, error = make(part, council)
            except MemberLost:
                continue
            if error is not None:
                raise error
            assert made is not None
            return made
    finally:
        council.leave()


def may_go_on(answered: Collection[int], size: int) -> bool:
    """Whether these ranks may continue although other ranks, maybe alive, cannot be reached.

    A network may fall into parts. At most one part has more than half of all ranks, or exactly half
    of them and rank 0. So no two parts continue.
    """
    return 2 * len(answered) > size or (2 * len(answered) == size and 0 in answered)
