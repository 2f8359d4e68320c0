"""The chair of a council: it receives the answers of members, makes a roll, and decides it.

``council.py`` describes the states of the chair and of the other members.
"""

from __future__ import annotations

import socket

from cobre_kernels.tcp import tags

from cobre_comm.backends.shrink import may_go_on
from cobre_comm.backends.tcp import callers as ports
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre_comm.backends.tcp.rendezvous.addresses import Address
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, send
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake
from cobre_comm.backends.tcp.rendezvous.sockets import prepare
from cobre_comm.backends.tcp.survivors import (
    GOES_ON,
    GRACE_S,
    NO_CHAIR,
    TIME_OVER,
    TOO_SMALL,
    Answer,
    Survivors,
)
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.running_time import running_s


class Chair:
    """This rank as the chair, when all members before it are gone."""

    def __init__(self, known: Survivors) -> None:
        self._known = known
        self._answers: dict[int, Answer] = {}  # by rank: its last answer
        self._holders: set[int] = set()  # the members that hold the roll of this call
        expected = {(r, tags.COUNCIL) for r in known.members if r > known.rank}
        acceptor = Acceptor(
            known.loop, known.config, lambda _: known.callers.key, self._admit, expected,
            links=2 * len(expected), is_quiet=True,
        )  # fmt: skip
        acceptor.serve([known.callers.listener])
        for member in self._others() - known.unreachable:
            known.loop.start(known.watch(member))

    def lead(self) -> bytes:
        """Decide a roll, and return it."""
        known = self._known
        is_in_time = known.loop.run(lambda: not self._silent(), self._limit())
        answers = [self._answers[member] for member in self._answered()]
        at_this_call = (each for each in answers if each.call == known.call)
        latest = max([known.own, *at_this_call], key=lambda each: each.chair)
        if latest.chair == NO_CHAIR:
            if any(each.call > known.call for each in answers):
                raise known.failed(known.left_out(), [known.rank])
            latest = Answer(known.call, self._new_roll(is_in_time))
        else:  # a late member may hold another roll, or none, so it counts as unreachable
            known.unreachable.update(self._silent() | (known.overdue - known.gone))
        known.own = Answer(known.call, latest.content, known.rank)
        self._holders = {m for m in self._answered() if self._answers[m].call > known.call}
        for member in self._listening():
            self._start(member, self._hand_over(member))
        if not known.loop.run(self._is_held, self._limit()):
            known.unreachable.update(self._answered() - self._holders - known.gone)
        holders = {known.rank, *self._holders}
        if known.unreachable and not may_go_on(holders, known.size):
            missing = set(known.members) - holders
            raise known.failed(known.too_small(missing, len(holders)), missing)
        for member in self._holders.intersection(self._listening()):
            self._start(member, self._decide_for(member))
        return known.own.content

    def _limit(self) -> float:
        return max(self._known.until, running_s() + GRACE_S)

    def _new_roll(self, is_in_time: bool) -> bytes:
        """Return a roll of the members that have answered, or of the members that are late."""
        known = self._known
        rows = {known.rank: known.own.content}
        rows |= {m: each.content for m, each in self._answers.items() if each.call == known.call}
        how = GOES_ON
        if known.unreachable and not may_go_on(rows, known.size):
            how = TOO_SMALL
        elif known.overdue or not is_in_time:
            how, rows = TIME_OVER, dict.fromkeys(self._silent() | known.overdue, b"")
        return bytes([how]) + b"".join(messages.ROLL_ENTRY.pack(m) + rows[m] for m in sorted(rows))

    def _others(self) -> set[int]:
        """Return the other members that may live."""
        return set(self._known.members) - {self._known.rank} - self._known.gone

    def _awaited(self) -> set[int]:
        """Return the other members that may still send something."""
        return self._others() - self._known.unreachable - self._known.overdue

    def _answered(self) -> set[int]:
        """Return the other members that have answered this call or the next call."""
        return {m for m, each in self._answers.items() if each.call >= self._known.call}

    def _silent(self) -> set[int]:
        return self._awaited() - self._answered()

    def _is_held(self) -> bool:
        return self._awaited() & self._answered() <= self._holders

    def _listening(self) -> list[int]:
        """Return the members that have answered this call and still have a link to the chair."""
        here = (m for m, each in self._answers.items() if each.call == self._known.call)
        return [member for member in here if member in self._known.links]

    # Tasks of the chair that talk to one member.

    def _admit(self, peer: Handshake, link: socket.socket, _: Address) -> None:
        self._known.links[peer.rank] = prepare(link, ports.KEEPALIVE)
        self._start(peer.rank, self._hear(peer.rank))

    def _start(self, member: int, talk: Task[None]) -> None:
        """Start a task that talks to a member; if the link breaks meanwhile, close the link."""

        def until_its_link_ends() -> Task[None]:
            try:
                yield from talk
            except (OSError, InitializationFailed):
                self._known.drop(member)

        self._known.loop.start(until_its_link_ends())

    def _hear(self, member: int) -> Task[None]:
        """Receive a member's answer to this call or the next; answer an older call by its roll."""
        known = self._known
        link = known.links[member]
        while True:
            frame = yield from messages.receive_frame(link, member, messages.answer(known.size))
            call, chair = messages.ANSWER_HEAD.unpack_from(frame)
            if call >= known.call:
                self._answers[member] = Answer(call, frame[messages.ANSWER_HEAD.size :], chair)
                return
            yield from self._give(member, known.before)
            yield from self._say_decided(link)

    def _hand_over(self, member: int) -> Task[None]:
        call = self._known.call
        yield from self._give(member, self._known.own.content)
        if call == self._known.call:  # in a later call, the holders are those of a later roll
            self._holders.add(member)

    def _give(self, member: int, roll: bytes) -> Task[None]:
        """Send a member a roll, and wait until it says that it holds the roll."""
        link = self._known.links[member]
        yield from send(link, messages.pack_checked(tags.ROLL, roll))
        yield from messages.receive_frame(link, member, messages.HELD)

    def _say_decided(self, link: socket.socket) -> Task[None]:
        is_parted = bytes([bool(self._known.unreachable)])
        yield from send(link, messages.pack_checked(tags.DECIDED, is_parted))

    def _decide_for(self, member: int) -> Task[None]:
        yield from self._say_decided(self._known.links[member])
        yield from self._hear(member)
