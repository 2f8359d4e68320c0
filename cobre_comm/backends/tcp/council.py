"""Call the roll of the survivors of several nodes, over sockets.

The first member that is left is the *chair*. The others connect to its port (``callers.py``), and
it watches theirs.

============ ======================================= ==============================================
state        the chair                               another member
============ ======================================= ==============================================
ANSWERED     has answered. ANSWER has come of each   has sent ANSWER. ROLL comes: HOLDS
             member, or the member is GONE or
             UNREACHABLE, or the time is over: HOLDS
HOLDS        holds a roll, and has sent ROLL. HELD   holds the roll, and has sent HELD. DECIDED
             has come of each member that lives:     comes: DECIDED
             DECIDED
DECIDED      has sent DECIDED                        --
ANSWERED or  --                                      the chair is GONE or UNREACHABLE, or has not
HOLDS                                                decided in time: ANSWERED, at the next chair
============ ======================================= ==============================================

- *One roll.* ANSWER brings the roll that the member holds, if it holds one. A chair takes such a
  roll, that of the latest chair, and makes a new one only where there is none. A roll is decided
  when every member that lives holds it. So every later chair finds it.
- *A rank that has returned* listens no more, and the next chair takes it for GONE. But then that
  chair holds the decided roll itself. Not so if a rank was UNREACHABLE, which may be back: DECIDED
  says so, and all that return leave their ports open, else that rank would believe itself alone.
- *One call apart.* If a member answers the next call, the roll that the chair holds is decided; a
  chair that holds none was left out, and gives up. If a member answers the call before, the chair
  decides that roll for it once more.
- *Who is late.* A roll that is made when the time is over has the members that live and have not
  answered, without rows. The time of a chair runs from its own call, so a member waits for a chair
  from the moment that the chair has taken its link. At the next chair the time begins anew.
- *Parts.* If a rank is UNREACHABLE, the roll goes on only if this part may (``may_go_on``). A
  roll's members answered the call before, so members only become fewer, and of two parts at most
  one goes on.

This is Paxos among ranks whose end is certain where a machine says so; the chair's rank is the
number of its ballot. Source: L. Lamport, "The Part-Time Parliament", ACM TOCS 16 (1998).
"""

from __future__ import annotations

import math
import socket
from typing import NamedTuple

from cobre_kernels.tcp import tags

from cobre_comm.backends.shrink import Council, Roll, may_go_on, overdue
from cobre_comm.backends.tcp import callers as ports
from cobre_comm.backends.tcp.callers import Callers, Gone, Unreachable
from cobre_comm.backends.tcp.process import this_process
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre_comm.backends.tcp.rendezvous.addresses import Address
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, TaskLoop, send
from cobre_comm.backends.tcp.rendezvous.handshake import (
    OWN_BYTE_ORDER,
    AuthenticationFailed,
    Handshake,
    Refused,
    handshake_as_connector,
)
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.journal.texts import ranks_text
from cobre_comm.system.running_time import running_s

SILENT_S = 8.0  # by then it is known whether a machine answers
ENDING_S = 1.0  # in which the system has closed all sockets of a process that has ended
GRACE_S = 2.0  # how much longer a rank waits than the rank that knows who is missing
NO_CHAIR = -1
GOES_ON, TIME_OVER, TOO_SMALL = range(3)  # how a roll begins


class Answer(NamedTuple):
    """The answer of a rank to a call: its row, or the roll that it holds."""

    call: int  # the number of the call
    content: bytes  # a row, or a roll if there is a chair
    chair: int = NO_CHAIR  # the rank that made the roll, or took the roll from a member


class TcpCouncil(Council):
    """The survivors of the ranks of several nodes."""

    def __init__(self, config: TcpConfig, callers: Callers) -> None:
        super().__init__(config.rank, config.size)
        self._config, self._callers = config, callers
        self._loop = TaskLoop()
        self._links: dict[int, socket.socket] = {}  # by rank: to the chair, or of the members
        self._gone: set[int] = set()
        self._unreachable: set[int] = set()
        self._overdue: set[int] = set()  # chairs that have not decided in time
        self._linked_s: dict[int, float] = {}  # by chair: when it had called shrink
        self._is_parted = False  # whether a chair has found a member unreachable
        self._own = Answer(0, b"")
        self._before = b""  # the roll of the call before
        self._limit_s = config.timeout_s + SILENT_S if config.timeout_s else math.inf
        self._until = math.inf
        # As the chair.
        self._leads = False
        self._answers: dict[int, Answer] = {}  # by rank, the last one
        self._holders: set[int] = set()  # of the roll of this call

    def leave(self) -> None:
        """Close all links, and the port, so that this rank counts as gone.

        A rank that comes too late, or back from another part, must not believe itself alone: for it
        the port stays open, in the latter case until this process ends.
        """
        self._loop.close()
        if self._is_parted or self._unreachable:
            self._callers.listener.detach()
        elif not self.has_failed:
            self._callers.close()
        for link in self._links.values():
            link.close()

    def _call_roll(self, row: bytes) -> Roll:
        self._until = running_s() + self._limit_s
        self._before, self._own = self._own.content, Answer(self.call, row)
        roll = None
        while roll is None:
            chair = min(set(self.members) - self._gone - self._unreachable - self._overdue)
            roll = self._lead() if chair == self.rank else self._follow(chair)
        return self._read(roll, len(row))

    def _read(self, roll: bytes, row_bytes: int) -> Roll:
        rows = {}
        if roll[0] == TIME_OVER:
            late = {rank for [rank] in messages.ROLL_ENTRY.iter_unpack(roll[1:])}
            return overdue(late, self._limit_s, "COBRE_TCP_TIMEOUT_SECS")
        for at in range(1, len(roll), messages.ROLL_ENTRY.size + row_bytes):
            [rank] = messages.ROLL_ENTRY.unpack_from(roll, at)
            rows[rank] = roll[
                at + messages.ROLL_ENTRY.size : at + messages.ROLL_ENTRY.size + row_bytes
            ]
        missing = set(self.members).difference(rows)
        if roll[0] == TOO_SMALL:
            return Roll(rows, self._too_small(missing, len(rows)), missing)
        return Roll(rows, "" if self.rank in rows else self._left_out(), missing)

    def _too_small(self, missing: set[int], count: int) -> str:
        are = "are" if len(missing) > 1 else "is"
        return (
            f"{ranks_text(missing)} {are} lost or cannot be reached, and the {count} that can are "
            f"not more than half of {self.size}, nor half of them with rank 0; the others may go on"
        )

    def _left_out(self) -> str:
        return f"rank {self.rank} could not be reached for a while; the others may go on without it"

    # Any member but the chair.

    def _follow(self, chair: int) -> bytes | None:
        """Answer to a chair; return the roll that is decided, None if another chair is needed."""
        decided: list[bytes] = []
        task = self._talk_to(chair, decided)
        self._loop.start(task)

        def is_over() -> bool:
            return bool(decided) or chair in self._gone | self._unreachable

        in_time = self._loop.run(is_over, self._until + GRACE_S)
        if not in_time and chair in self._linked_s:
            until = self._linked_s[chair] + self._limit_s + 2 * GRACE_S
            in_time = self._loop.run(is_over, until)
        if not in_time:
            self._loop.cancel(task)
            self._overdue.add(chair)
            self._until = running_s() + self._limit_s
        return decided[0] if decided else None

    def _talk_to(self, chair: int, decided: list[bytes]) -> Task[None]:
        try:
            if chair not in self._links:
                self._links[chair] = yield from self._link_to(chair)
                self._linked_s[chair] = running_s()
            link, own = self._links[chair], self._own
            answer = messages.ANSWER_HEAD.pack(own.call, own.chair) + own.content
            yield from send(link, messages.pack_checked(tags.ANSWER, answer))
            roll = yield from messages.receive_frame(link, chair, messages.roll(self.size))
            self._own = Answer(self.call, roll, chair)
            yield from send(link, messages.pack_checked(tags.HELD))
            is_parted = yield from messages.receive_frame(link, chair, messages.DECIDED)
            self._is_parted |= any(is_parted)
            decided.append(roll)
        except Gone:
            self._gone.add(chair)
        except Unreachable:
            self._cannot_reach(chair)
        except (OSError, InitializationFailed, AuthenticationFailed, Refused):
            yield from self._find_out_about(chair)

    def _link_to(self, chair: int) -> Task[socket.socket]:
        """Return a link to a chair, which answers as soon as it calls shrink itself."""

        def describe(_: bool) -> Handshake:
            return Handshake(
                rank=self.rank, size=self.size, version=tags.PROTOCOL_VERSION,
                byte_order=OWN_BYTE_ORDER, purpose=tags.COUNCIL, target=chair, port=0,
                process=this_process(),
            )  # fmt: skip

        sock = yield from ports.call(self._callers.endpoints[chair])
        try:
            yield from handshake_as_connector(sock, describe, self._callers.key, math.inf)
        except BaseException:
            sock.close()
            raise
        return sock

    def _find_out_about(self, chair: int) -> Task[None]:
        """Find out why the link to a chair has ended; a chair that lives has refused this rank."""
        self._drop(chair)
        # The system closes the sockets of an ended process one by one, and maybe its port last.
        yield from self._watch(chair, running_s() + ENDING_S)
        if chair not in self._gone:
            self._unreachable.add(chair)

    def _watch(self, rank: int, until: float = math.inf) -> Task[None]:
        """Note when the port of a rank is closed, or its machine does not answer."""
        try:
            yield from ports.watch(self._callers.endpoints[rank], until)
        except Gone:
            self._gone.add(rank)
        except Unreachable:
            self._cannot_reach(rank)

    def _cannot_reach(self, rank: int) -> None:
        """Note that the machine of a rank does not answer: no other rank there can be reached."""
        endpoints = self._callers.endpoints
        host = endpoints[rank].sockaddr[0]
        self._unreachable.update(r for r in self.members if endpoints[r].sockaddr[0] == host)
        self._unreachable.discard(self.rank)

    # The chair.

    def _lead(self) -> bytes:
        """Decide a roll."""
        if not self._leads:
            self._take_the_chair()
        is_in_time = self._loop.run(self._have_answered, self._limit())
        answers = [self._answers[member] for member in self._answered()]
        at_this_call = (each for each in answers if each.call == self.call)
        latest = max([self._own, *at_this_call], key=lambda each: each.chair)
        if latest.chair == NO_CHAIR:
            if any(each.call > self.call for each in answers):
                raise self.failed(self._left_out(), [self.rank])
            latest = Answer(self.call, self._new_roll(is_in_time))
        else:  # a member that lives and is late may hold another roll, or none
            self._unreachable.update(self._late())
        self._own = Answer(self.call, latest.content, self.rank)
        self._holders = {m for m in self._answered() if self._answers[m].call > self.call}
        for member in self._listening():
            self._loop.start(self._hand_over(member))
        if not self._loop.run(self._is_held, self._limit()):
            self._unreachable.update(self._answered() - self._holders - self._gone)
        holders = {self.rank, *self._holders}
        if self._unreachable and not may_go_on(holders, self.size):
            missing = set(self.members) - holders
            raise self.failed(self._too_small(missing, len(holders)), missing)
        for member in self._holders.intersection(self._listening()):
            self._loop.start(self._decide_for(member))
        return self._own.content

    def _limit(self) -> float:
        return max(self._until, running_s() + GRACE_S)

    def _take_the_chair(self) -> None:
        self._leads = True
        expected = {(r, tags.COUNCIL) for r in self.members if r > self.rank}
        acceptor = Acceptor(
            self._loop, self._config, lambda _: self._callers.key, self._admit, expected,
            links=2 * len(expected), is_quiet=True,
        )  # fmt: skip
        acceptor.serve([self._callers.listener])
        for member in self.members:
            if member != self.rank and member not in self._gone | self._unreachable:
                self._loop.start(self._watch(member))

    def _admit(self, peer: Handshake, link: socket.socket, _: Address) -> None:
        self._links[peer.rank] = ports.notices_soon(link)
        self._loop.start(self._hear(peer.rank))

    def _awaited(self) -> set[int]:
        """Return the members that may still say something."""
        return set(self.members) - {self.rank} - self._gone - self._unreachable - self._overdue

    def _late(self) -> set[int]:
        """Return the members that live and have said nothing, once this call's time is over."""
        return (self._awaited() - self._answered()) | (self._overdue - self._gone)

    def _answered(self) -> set[int]:
        """Return the other members that have answered this call, or the next one."""
        return {m for m, each in self._answers.items() if each.call >= self.call}

    def _have_answered(self) -> bool:
        return self._awaited() <= self._answered()

    def _new_roll(self, is_in_time: bool) -> bytes:
        """Return a roll of the members that have answered, or of those that are late."""
        rows = {self.rank: self._own.content}
        rows |= {m: each.content for m, each in self._answers.items() if each.call == self.call}
        how = GOES_ON
        if self._unreachable and not may_go_on(rows, self.size):
            how = TOO_SMALL
        elif self._overdue or not is_in_time:
            how, rows = TIME_OVER, dict.fromkeys(self._awaited() - self._answered(), b"")
            rows |= dict.fromkeys(self._overdue, b"")
        return bytes([how]) + b"".join(messages.ROLL_ENTRY.pack(m) + rows[m] for m in sorted(rows))

    def _is_held(self) -> bool:
        return self._awaited() & self._answered() <= self._holders

    def _listening(self) -> list[int]:
        """Return the members that have answered this call, and still have their link."""
        here = (m for m, each in self._answers.items() if each.call == self.call)
        return [member for member in here if member in self._links]

    def _hear(self, member: int) -> Task[None]:
        """Receive the answer of a member to this call, or to the next one."""
        try:
            link = self._links[member]
            while True:
                frame = yield from messages.receive_frame(link, member, messages.answer(self.size))
                call, chair = messages.ANSWER_HEAD.unpack_from(frame)
                if call >= self.call:
                    self._answers[member] = Answer(call, frame[messages.ANSWER_HEAD.size :], chair)
                    return
                yield from self._give(member, self._before)
                yield from self._say_decided(link)
        except (OSError, InitializationFailed):
            self._drop(member)

    def _hand_over(self, member: int) -> Task[None]:
        try:
            call = self.call
            yield from self._give(member, self._own.content)
            if call == self.call:  # else this rank has gone on without it
                self._holders.add(member)
        except (OSError, InitializationFailed):
            self._drop(member)

    def _give(self, member: int, roll: bytes) -> Task[None]:
        """Give a member a roll to hold."""
        link = self._links[member]
        yield from send(link, messages.pack_checked(tags.ROLL, roll))
        yield from messages.receive_frame(link, member, messages.HELD)

    def _say_decided(self, link: socket.socket) -> Task[None]:
        is_parted = bytes([bool(self._unreachable)])
        yield from send(link, messages.pack_checked(tags.DECIDED, is_parted))

    def _decide_for(self, member: int) -> Task[None]:
        try:
            yield from self._say_decided(self._links[member])
        except OSError:
            self._drop(member)
        else:
            yield from self._hear(member)

    def _drop(self, member: int) -> None:
        """Close the link of a member, or to a chair; its port says whether it lives."""
        if member in self._links:
            self._links.pop(member).close()
