"""Calls the roll of the survivors of several nodes, over sockets.

The lowest member that is left is the *chair* (``chair.py``). The other members connect to the
chair's port (``callers.py``), and the chair watches their ports.

============ ======================================= ==============================================
state        the chair                               another member
============ ======================================= ==============================================
ANSWERED     has answered. Each member has sent      has sent ANSWER. ROLL arrives: HOLDS
             ANSWER, or the member is GONE or
             UNREACHABLE, or the time is over: HOLDS
HOLDS        holds a roll, and has sent ROLL. Each   holds the roll, and has sent HELD. DECIDED
             member that lives has sent HELD:        arrives: DECIDED
             DECIDED
DECIDED      has sent DECIDED                        --
ANSWERED or  --                                      the chair is GONE or UNREACHABLE, or has not
HOLDS                                                decided in time: ANSWERED, at the next chair
============ ======================================= ==============================================

- *One roll.* In ANSWER a member sends the roll that it holds, if it holds one. A chair takes over
  such a roll; if there are several, it takes the roll of the latest chair. It makes a new roll only
  if no member holds one. A roll is decided when every member that lives holds it. So every later
  chair finds the decided roll.
- *A rank that has returned* listens no more, and the next chair counts it as GONE. No harm
  follows, because the next chair holds the decided roll itself. A rank that was UNREACHABLE may be
  back without the roll, and must not believe that it is alone. So DECIDED says whether a rank was
  UNREACHABLE, and if so, all ranks that return leave their ports open.
- *One call apart.* If a member already answers the next call, the roll that the chair holds is
  decided. If the chair then holds no roll, it was left out, and gives up. If a member still answers
  the call before, the chair sends that member the roll of the call before once more, and DECIDED.
- *Who is late.* A roll that is made when the time is over names the members that live and have not
  answered, and has no rows. The time of a chair runs from its own call. So a member waits for a
  chair from the moment when the chair has accepted the member's link. At the next chair the time
  begins anew.
- *Parts.* If a rank is UNREACHABLE, the part of the network that has the chair continues only if
  ``may_go_on`` allows that. The members of a roll have answered the call before, so members only
  become fewer, and of two parts at most one continues.

This is Paxos, but the end of a rank is certain if the machine of that rank reports it. The chair's
rank is the number of its ballot. Source: L. Lamport, "The Part-Time Parliament", ACM TOCS 16
(1998).
"""

from __future__ import annotations

import math
import socket

from cobre_kernels.tcp import tags

from cobre_comm.backends.shrink import Roll
from cobre_comm.backends.tcp import callers as ports
from cobre_comm.backends.tcp.callers import Callers, Gone, Unreachable
from cobre_comm.backends.tcp.chair import Chair
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, send
from cobre_comm.backends.tcp.rendezvous.handshake import (
    AuthenticationFailed,
    Refused,
    handshake_as_connector,
    introduce,
)
from cobre_comm.backends.tcp.survivors import GRACE_S, TIME_OVER, TOO_SMALL, Answer, Survivors
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.running_time import running_s

ENDING_S = 1.0  # the time in which the system closes all sockets of a process that has ended


class TcpCouncil(Survivors):
    """The survivors of several nodes; this rank follows a chair until it is the chair itself."""

    def __init__(self, config: TcpConfig, callers: Callers) -> None:
        super().__init__(config, callers)
        self._chair: Chair | None = None
        self._linked_s: dict[int, float] = {}  # by chair: when that chair accepted this rank's link
        self._is_parted = False  # whether a chair has found a member unreachable

    def leave(self) -> None:
        """Close all links, and the port, so that other ranks count this rank as gone.

        The port stays open if another rank may still call, because that rank must not believe that
        it is alone. Such a rank either calls shrink too late, after this shrink has failed, or was
        unreachable and is back from another part. For the latter, the port stays open until this
        process ends.
        """
        self.loop.close()
        if self._is_parted or self.unreachable:
            self.callers.listener.detach()
        elif not self.has_failed:
            self.callers.close()
        for link in self.links.values():
            link.close()

    def _call_roll(self, row: bytes) -> Roll:
        self.until = running_s() + self.limit_s
        self.before, self.own = self.own.content, Answer(self.call, row)
        roll = None
        while roll is None:
            chair = min(set(self.members) - self.gone - self.unreachable - self.overdue)
            roll = self._lead() if chair == self.rank else self._follow(chair)
        return self._read(roll, len(row))

    def _read(self, roll: bytes, row_bytes: int) -> Roll:
        head_bytes = messages.ROLL_ENTRY.size
        entry_bytes = head_bytes + (0 if roll[0] == TIME_OVER else row_bytes)
        rows = {}
        for at in range(1, len(roll), entry_bytes):
            [rank] = messages.ROLL_ENTRY.unpack_from(roll, at)
            rows[rank] = roll[at + head_bytes : at + entry_bytes]
        if roll[0] == TIME_OVER:
            return self.time_over(rows)
        missing = set(self.members).difference(rows)
        if roll[0] == TOO_SMALL:
            return Roll(rows, self.too_small(missing, len(rows)), missing)
        return Roll(rows, "" if self.rank in rows else self.left_out(), missing)

    def _lead(self) -> bytes:
        if self._chair is None:
            self._chair = Chair(self)
        return self._chair.lead()

    def _follow(self, chair: int) -> bytes | None:
        """Answer to a chair; return the decided roll, or None if this rank needs another chair."""
        decided: list[bytes] = []
        task = self._talk_to(chair, decided)
        self.loop.start(task)

        def is_over() -> bool:
            return bool(decided) or chair in self.gone | self.unreachable

        in_time = self.loop.run(is_over, self.until + GRACE_S)
        if not in_time and chair in self._linked_s:
            until = self._linked_s[chair] + self.limit_s + 2 * GRACE_S
            in_time = self.loop.run(is_over, until)
        if not in_time:
            self.loop.cancel(task)
            self.overdue.add(chair)
            self.until = running_s() + self.limit_s
        return decided[0] if decided else None

    def _talk_to(self, chair: int, decided: list[bytes]) -> Task[None]:
        try:
            if chair not in self.links:
                self.links[chair] = yield from self._link_to(chair)
                self._linked_s[chair] = running_s()
            link, own = self.links[chair], self.own
            answer = messages.ANSWER_HEAD.pack(own.call, own.chair) + own.content
            yield from send(link, messages.pack_checked(tags.ANSWER, answer))
            roll = yield from messages.receive_frame(link, chair, messages.roll(self.size))
            self.own = Answer(self.call, roll, chair)
            yield from send(link, messages.pack_checked(tags.HELD))
            is_parted = yield from messages.receive_frame(link, chair, messages.DECIDED)
            self._is_parted |= any(is_parted)
            decided.append(roll)
        except Gone:
            self.gone.add(chair)
        except Unreachable:
            self.cannot_reach(chair)
        except (OSError, InitializationFailed, AuthenticationFailed, Refused):
            yield from self._find_out_about(chair)

    def _link_to(self, chair: int) -> Task[socket.socket]:
        """Return a link to a chair, which answers when the chair itself calls shrink."""
        own = introduce(self.rank, self.size, tags.COUNCIL, chair)
        sock = yield from ports.call(self.callers.endpoints[chair])
        try:
            yield from handshake_as_connector(sock, lambda _: own, self.callers.key, math.inf)
        except BaseException:
            sock.close()
            raise
        return sock

    def _find_out_about(self, chair: int) -> Task[None]:
        """Find out why the link to a chair has ended; a living chair has refused this rank."""
        self.drop(chair)
        # The system closes the sockets of an ended process one after another, maybe the port last.
        yield from self.watch(chair, running_s() + ENDING_S)
        if chair not in self.gone:
            self.unreachable.add(chair)
