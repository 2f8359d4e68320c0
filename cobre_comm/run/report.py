"""What the launcher says last, and its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cobre_comm.errors import signal_name
from cobre_comm.processes import endings
from cobre_comm.processes.endgame import Endgame
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.rank import Rank
from cobre_comm.run.outlet import Outlet


class Report:
    """The end of a job whose ranks have all ended.

    Parameters
    ----------
    ranks : sequence of Rank
        All that ran here.
    starter : MpiStart or None
        What started them, if not this process.
    outlet : Outlet
        Where to say it.
    """

    def __init__(self, ranks: Sequence[Rank], starter: MpiStart | None, outlet: Outlet) -> None:
        self._ranks = {rank.rank: rank for rank in ranks}
        self._starter = starter
        self._outlet = outlet

    def by_signal(self, cause: int, killed: Sequence[int], grace_s: float) -> int:
        """Say which signal ended the job, and which ranks would not end; return the status."""
        self._say(f"ended by {signal_name(cause)}")
        if killed:
            ranks = ", ".join(map(str, killed))
            self._say(f"still running after {grace_s:g} s, killed: rank {ranks}")
        return 128 + cause

    def by_ranks(self, endgame: Endgame) -> int:
        """Say what went wrong, last of all; return the exit status."""
        ends = [self._judged(rank) for rank in self._ranks.values()]
        if self._starter is not None and self._starter.end is not None:
            ends.append(self._starter.end)
        by_themselves = [end for end in ends if end.at <= endgame.ended_by_us]
        first = endings.first_failure(by_themselves) or endings.first_failure(ends)
        if first is None:
            return 0
        self._describe(first, by_themselves)
        return endings.exit_status(first.code)

    def _judged(self, rank: Rank) -> endings.End:
        end = rank.end if self._starter is None else self._starter.judged(rank)
        assert end is not None
        if rank.streams is None or end.code < 0 or end.secondary:
            return end
        words = "\n".join(endings.last_lines(rank.streams[1].tail))
        return replace(end, secondary=endings.tells_of_lost_peer(words))

    def _describe(self, first: endings.End, by_themselves: Sequence[endings.End]) -> None:
        name = endings.name_of(first.rank)
        others = [e.rank for e in by_themselves if e.code != 0 and e.rank != first.rank]
        if ranks := [str(rank) for rank in others if rank in self._ranks and self._began(rank)]:
            self._say(f"failed after {name}: rank {', '.join(ranks)}")
        process = self._ranks.get(first.rank) or (self._starter and self._starter.process)
        streams = process.streams if process else None
        lines = endings.last_lines(streams[1].tail) if streams else []
        if lines:
            self._say(f"the last words of {name}:")
            self._outlet.put("".join(f"    {line}\n" for line in lines).encode())
        if first.rank in self._ranks and not self._began(first.rank):
            self._say(f"{name} was not started by mpiexec")
        else:
            self._say(endings.describe(first))

    def _began(self, rank: int) -> bool:
        return self._ranks[rank].pid != 0

    def _say(self, text: str) -> None:
        self._outlet.put(f"cobre-comm: {text}\n".encode())
        self._outlet.write_all()
