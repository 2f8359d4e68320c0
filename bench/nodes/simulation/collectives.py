"""Our collectives, as the ranks of one node act in them: the rounds of ``nodes/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.nodes.simulation import choices
from bench.nodes.simulation.chain import Chain
from bench.nodes.simulation.choices import EAGER_BYTES, HEADER_BYTES
from bench.nodes.simulation.cluster import Lane, Node
from bench.nodes.simulation.events import Steps
from bench.nodes.simulation.verbs import relay, to_all

MOST_ROUNDS = 8  # that are simulated; later ones take as long as the last half of these


def barrier(node: Node) -> Steps:
    """Enter, exchange headers, return."""
    yield from node.arrive()
    yield from _round(node, True, 1, 0, None)


def allgatherv(node: Node, nbytes: int, givers: int, private: bool) -> Steps:
    """Gather so many bytes from all ranks together, of whom ``givers`` give anything."""
    at = node.at
    yield from node.arrive()
    if at.ranks == 1:
        if private:
            yield from node.copy(nbytes / at.nodes)
        yield from _gather(node, True, 1, nbytes)
        return
    rounds = choices.rounds_of_allgatherv(at, nbytes, givers)
    lanes = choices.lanes_of(at, nbytes)
    if not private:
        yield from node.copy(rounds[0] / givers)
        yield from _gather(node, True, lanes, nbytes)
        return

    def one(round_bytes: int, is_first: bool, before: int) -> Steps:
        yield from node.copy(round_bytes / givers)
        yield from _gather(node, is_first, lanes, round_bytes, before)

    yield from _in_rounds(node, rounds, one)


def broadcast(node: Node, nbytes: int, private: bool) -> Steps:
    """Broadcast from rank 0."""
    at = node.at
    yield from node.arrive()
    rounds = [nbytes] if at.ranks == 1 or not private else choices.cut(nbytes, at.half)
    lanes = choices.lanes_of(at, nbytes) if at.ranks > 1 else 1
    copies = at.ranks > 1 and private

    def one(round_bytes: int, is_first: bool, before: int) -> Steps:
        if node.number == 0 and copies:
            yield from node.lane(0).work(round_bytes / at.copy)
        if is_first and round_bytes <= EAGER_BYTES and lanes == 1:
            payload = round_bytes if node.number == 0 else 0
            yield from _round(node, True, 1, payload, None)
        else:
            yield from _round(
                node, is_first, lanes, 0, lambda lane: _cast(lane, round_bytes, lanes), before
            )

    yield from _in_rounds(node, rounds, one, copies)


def allreduce(node: Node, nbytes: int) -> Steps:
    """Reduce so many bytes of each rank."""
    at = node.at
    yield from node.arrive()
    lanes = choices.lanes_of(at, nbytes) if at.ranks > 1 else 1
    if choices.gathers_all(at, nbytes):
        yield from node.copy(nbytes)
        yield from _gather(node, True, 1, at.size * nbytes)
        yield from node.fold(at.size * nbytes)
    elif at.size == 2:
        yield from _round(node, True, 1, 0, lambda lane: Chain(lane, nbytes).steps())
    elif choices.goes_along_chain(at, lanes):
        yield from _in_rounds(node, choices.rounds_of_chain(at, nbytes), _chain_of(node, lanes))
    else:
        rounds = choices.rounds_of_stripes(at, nbytes, lanes)
        yield from _in_rounds(node, rounds, _stripes_of(node, lanes), at.ranks > 1)


def _chain_of(node: Node, lanes: int) -> Callable[[int, bool, int], Steps]:
    def one(chunk: int, is_first: bool, before: int) -> Steps:
        share = -(-chunk // lanes)
        yield from node.copy(chunk)
        yield from _round(node, is_first, lanes, 0, lambda lane: Chain(lane, share).steps(), before)

    return one


def _stripes_of(node: Node, lanes: int) -> Callable[[int, bool, int], Steps]:
    """Each leader gets its stripe of every contribution, folds it, and gives it to all."""
    at = node.at

    def lead(lane: Lane, stripe: int) -> Steps:
        yield from to_all(lane, at.ranks * stripe)
        yield from lane.fold(at.size * stripe)
        yield from _send_blocks(lane, lanes, stripe)

    def one(chunk: int, is_first: bool, before: int) -> Steps:
        stripe = -(-chunk // (at.nodes * lanes))
        if at.ranks > 1:
            yield from node.copy(chunk)
        yield from _round(node, is_first, lanes, 0, lambda lane: lead(lane, stripe), before)

    return one


def _cast(lane: Lane, nbytes: int, lanes: int) -> Steps:
    share = -(-nbytes // lanes)
    yield from relay(lane, [share, *[0] * (lane.at.nodes - 1)])


def _gather(node: Node, is_first: bool, lanes: int, nbytes: int, before: int = 0) -> Steps:
    """Go through a round that gathers as many bytes of every node, with headers if they are few."""
    block = -(-nbytes // node.at.nodes)
    if is_first and block <= EAGER_BYTES and lanes == 1:
        yield from _round(node, True, 1, block, None)
    else:
        share = -(-block // lanes)
        yield from _round(
            node, is_first, lanes, 0, lambda lane: _send_blocks(lane, lanes, share), before
        )


def _send_blocks(lane: Lane, lanes: int, block: int) -> Steps:
    if choices.goes_straight(lane.at, lanes, block):
        yield from to_all(lane, block)
    else:
        yield from relay(lane, [block] * lane.at.nodes)


def _round(
    node: Node, is_first: bool, lanes: int, payload: int, data: Callable[[Lane], Steps] | None,
    before: int = 0,
) -> Steps:  # fmt: skip
    """Go through a round: enter, agree if it is the first, move data, hand out.

    Meanwhile, ranks take so many bytes that the round before has brought, leaders last.
    """

    def lead(lane: Lane) -> Steps:
        if is_first:
            yield from to_all(lane, HEADER_BYTES + payload)
        if data is not None:
            yield from data(lane)
        if before:
            yield from lane.work(before / node.at.copy)

    yield from node.step()
    yield from node.lead(lanes, lead, node.copy(before, node.at.ranks - lanes))
    yield from node.step()


def _in_rounds(
    node: Node, rounds: Sequence[int], one: Callable[[int, bool, int], Steps], takes: bool = True
) -> Steps:
    """Go through rounds, each of which is told what is still to be taken of the one before."""
    before = 0

    def each(nbytes: int, is_first: bool) -> Steps:
        nonlocal before
        yield from one(nbytes, is_first, before)
        before = nbytes if takes else 0

    yield from repeat(node, rounds, each)
    yield from node.copy(before)


def repeat(node: Node, rounds: Sequence[int], one: Callable[[int, bool], Steps]) -> Steps:
    """Go through rounds. Of many alike, most are counted: they take as long as those before."""
    clock, counted, began = node.cluster.clock, max(len(rounds) - MOST_ROUNDS - 1, 0), 0.0
    for number, nbytes in enumerate(rounds[: len(rounds) - 1 - counted]):
        if number == MOST_ROUNDS // 2:
            began = clock.now
        yield from one(nbytes, number == 0)
    if counted > 0:
        yield counted * (clock.now - began) / (MOST_ROUNDS - MOST_ROUNDS // 2)
    yield from one(rounds[-1], len(rounds) == 1)
