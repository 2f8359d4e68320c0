"""The verb chain of tcp, as one leader acts in it; the loop is that of ``tcp/chain.py``."""

from __future__ import annotations

from bench.nodes.simulation.choices import STAGING_CHUNKS, chain_chunk_bytes
from bench.nodes.simulation.cluster import Lane
from bench.nodes.simulation.events import Steps


class Chain:
    """A reduction along the nodes, and its results around the ring.

    Parameters
    ----------
    lane : Lane
        The leader.
    nbytes : int
        Of each contribution.
    """

    def __init__(self, lane: Lane, nbytes: int) -> None:
        self._lane, self._nbytes, self._chunk = lane, nbytes, chain_chunk_bytes(nbytes)
        nodes, own = lane.at.nodes, lane.node.number
        self._ranks, self._own, self._last = lane.at.ranks, own, nodes - 1
        self._following, self._previous = (own + 1) % nodes, (own - 1) % nodes
        self._is_pair = lane.at.size == 2
        chunks = -(-nbytes // self._chunk)
        sends = (True, False) if self._is_pair else (own != nodes - 1, own != nodes - 2)
        comes = (True, False) if self._is_pair else (own != 0, own != nodes - 1)
        # Chunks of partial folds and of results that have moved, and that will have moved.
        self._sent, self._to_send = [0, 0], [chunks * each for each in sends]
        self._come, self._to_come = [0, 0], [chunks * each for each in comes]
        self._out_left = self._in_left = 0
        self._out_is_result = self._in_is_result = False

    def steps(self) -> Steps:
        """Return when all results are here, and passed on."""
        while not self._is_done():
            has_moved = False
            if self._out_left or self._choose():
                if self._out_left == 0:
                    yield from self._begin_frame()
                    has_moved = True
                yield from self._lane.send(self._following, self._out_left)
                has_moved |= self._count_sent()
            if self._can_receive():
                yield from self._lane.receive(self._previous, self._in_left)
                has_moved |= self._lane.count > 0
                self._in_left -= self._lane.count
                if self._in_left == 0:
                    yield from self._finish_frame()
            if self._is_pair:
                yield from self._fold_pair()
            if not has_moved:
                yield self._lane.signal

    def _is_done(self) -> bool:
        has_folded = not self._is_pair or self._come[1] == self._to_come[0]
        return self._has_all() and self._sent == self._to_send and has_folded

    def _has_all(self) -> bool:
        return self._come[0] == self._to_come[0] and self._come[1] >= self._to_come[1]

    def _bytes_of(self, chunk: int) -> int:
        return min(self._chunk, self._nbytes - chunk * self._chunk)

    def _choose(self) -> bool:
        """Choose the next frame, a result first; tell whether one is ready."""
        is_source = self._own == 0 or self._is_pair
        folded = self._to_send[0] if is_source else self._come[0]
        if self._sent[1] < min(self._to_send[1], self._come[1]):
            self._out_is_result = True
        elif self._sent[0] < min(self._to_send[0], folded):
            self._out_is_result = False
        else:
            return False
        return True

    def _begin_frame(self) -> Steps:
        chunk = self._sent[self._out_is_result]
        self._out_left = self._bytes_of(chunk)
        if not self._out_is_result and self._own == 0 and self._ranks > 1:
            yield from self._lane.fold(self._ranks * self._out_left)
        self._lane.to(self._following).frames.append(self._out_is_result)

    def _count_sent(self) -> bool:
        self._out_left -= self._lane.count
        if self._out_left == 0:
            self._sent[self._out_is_result] += 1
        return self._lane.count > 0

    def _can_receive(self) -> bool:
        """Tell whether bytes may be read: of a result, or of a partial fold that has room."""
        if self._has_all():  # what comes then is of the next round
            return False
        frames = self._lane.source(self._previous).frames
        if self._in_left == 0:
            if not frames:
                return False
            self._in_is_result = frames.popleft()
            self._in_left = self._bytes_of(self._come[self._in_is_result])
        used = self._sent[0] if self._own != self._last and not self._is_pair else self._come[1]
        return self._in_is_result or self._come[0] - used < STAGING_CHUNKS

    def _finish_frame(self) -> Steps:
        """Count a chunk that has come in; fold this node's own into it if it is a partial fold."""
        chunk = self._come[self._in_is_result]
        self._come[self._in_is_result] += 1
        if self._in_is_result or self._is_pair:
            return
        yield from self._lane.fold(self._ranks * self._bytes_of(chunk))
        if self._own == self._last:
            self._come[1] = chunk + 1

    def _fold_pair(self) -> Steps:
        """Fold the chunks that have come, once this rank's own have been sent."""
        while self._come[1] < min(self._come[0], self._sent[0]):
            yield from self._lane.fold(self._bytes_of(self._come[1]))
            self._come[1] += 1
