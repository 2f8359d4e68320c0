"""What a collective and an SDDP iteration cost between nodes, computed by formulas.

    python -m bench.nodes 16x64 256x128 --gbits 25 100 [--lanes 4] [--terms alpha=10e-6 socket=4e9]
    python -m bench.nodes --check   # each formula beside what was measured between namespaces

docs/design/scale.md says what the terms mean and where their numbers come from, and
docs/benchmarks/nodes.md what was measured. `make docs` makes the tables of both pages.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bench.ranks.work import CUT_BYTES, POINT, SDDP_BYTES, STAGES, TRAJECTORIES
from bench.report.data import RECORDED, Record, load
from bench.report.text import NONE, number, table

KIB, MIB, MB = 2**10, 2**20, 1_000_000
HEADERS = 1448 / 1514  # the part of a full frame of a cable that is payload
EAGER_BYTES = 8 * KIB  # between machines: the most bytes of a node that travel behind its header
# The largest contribution to an allreduce that goes to all; larger ones go by chain or stripes.
GATHER_BYTES = 16 * KIB
STRAIGHT_BYTES = 64 * KIB  # the largest block of a lane that goes to every leader in one hop
LANE_BYTES = 256 * KIB  # a payload takes all lanes if it has so many bytes for each lane
PIECE_BYTES = (128 * KIB, 256 * KIB)  # the least and the most bytes that a chain passes on at once
LANE_GBITS, MOST_LANES = 20, 8  # Gbit/s of a cable for each leader; the most leaders of a node


@dataclass(frozen=True)
class Nodes:
    """Nodes and their cables, in seconds and bytes a second. The defaults are a cluster's."""

    nodes: int
    ranks: int  # ranks on each node
    link: float  # speed of a cable, in each direction
    lanes: int = 1  # ranks of a node that move bytes between nodes
    alpha: float = 20e-6  # time from the send of a leader until another leader has read the message
    message: float = 2e-6  # time that a leader spends on one message to one other leader
    step: float = 0.0  # time of a step among the ranks of a node; 0: from the number of ranks
    socket: float = 2.5e9  # speed at which one leader sends, while it receives at the same speed
    copy: float = 8e9  # speed of a copy by one rank
    memory: float = 200e9  # speed of copies by all ranks of a node together
    fold: float = 6e9  # speed of a fold by one rank, in bytes of contributions

    @property
    def size(self) -> int:
        return self.nodes * self.ranks

    @property
    def half(self) -> int:  # half of a staging buffer, in bytes: so much moves in one round
        return max(2 * MIB, 128 * KIB * self.ranks)

    @property
    # speed of a copy by each rank of a node, if all copy at the same time
    def copy_of_all(self) -> float:
        return min(self.copy, self.memory / self.ranks)

    @property
    def meeting(self) -> float:  # time of the two steps of a round
        return 2 * (self.step or (1e-6 if self.ranks <= 16 else 2e-6))

    def lanes_of(self, nbytes: float) -> int:
        """Return how many lanes a payload takes."""
        return self.lanes if nbytes >= min(self.lanes * LANE_BYTES, self.half) else 1

    def stream(self, lanes: int) -> float:
        """Return the speed of all streams of a node together."""
        return min(HEADERS * self.link, lanes * self.socket)


def to_all(at: Nodes) -> float:
    """Return the seconds in which each leader sends a message to each other leader."""
    return max(at.alpha + 2 * at.message, 2 * (at.nodes - 1) * at.message)


def around(at: Nodes) -> float:
    """Return the seconds of all hops once around the ring of leaders."""
    return (at.nodes - 1) * (at.alpha + at.message)


def hops(at: Nodes, lanes: int, block: float) -> float:
    """Return the seconds of the hops of blocks: in one hop to all leaders, or around the ring."""
    is_straight = at.nodes > 2 and lanes > 1 and block / lanes <= STRAIGHT_BYTES
    return to_all(at) if is_straight else around(at)


def by_hops(at: Nodes) -> float:
    """Return the seconds of an exchange by hops."""
    return (at.nodes - 1).bit_length() * (at.alpha + 2 * at.message)


def barrier(at: Nodes) -> float:
    """Return the seconds of a step, an exchange of headers among leaders, and a second step."""
    return at.meeting + min(to_all(at), by_hops(at))


def through_staging(
    at: Nodes, nbytes: float, rounds: int, moving: float, copied_in: float
) -> float:
    """Return the seconds of rounds; ranks copy a chunk out while leaders move the next chunk."""
    last = nbytes / rounds
    before = nbytes - last
    moving = max(moving + before / at.copy, before / at.copy_of_all)
    return rounds * at.meeting + (copied_in + last) / at.copy_of_all + moving


def allgatherv(at: Nodes, nbytes: float, private: bool = True) -> float:
    """Return the seconds of an allgatherv of so many bytes in all; into regions if not private."""
    lanes, block = at.lanes_of(nbytes), nbytes / at.nodes
    crossing = (nbytes - block) / at.stream(lanes)
    if block <= EAGER_BYTES and lanes == 1:
        return barrier(at) + crossing + (at.ranks > 1) * nbytes / at.copy_of_all
    if at.ranks == 1 or not private:
        return barrier(at) + hops(at, lanes, block) + crossing
    rounds = math.ceil(nbytes / at.half)
    moving = rounds * hops(at, lanes, block / rounds) + crossing
    return barrier(at) + through_staging(at, nbytes, rounds, moving, nbytes / at.size)


def broadcast(at: Nodes, nbytes: float, private: bool = True) -> float:
    """Return the seconds of a broadcast."""
    if nbytes <= EAGER_BYTES:
        return barrier(at) + nbytes * (at.nodes - 1) / at.stream(1)
    lanes = at.lanes_of(nbytes) if at.ranks > 1 else 1
    crossing = nbytes / at.stream(lanes)
    if at.ranks == 1 or not private:
        return barrier(at) + around(at) + crossing
    rounds = math.ceil(nbytes / at.half)
    moving = rounds * around(at) + crossing
    return barrier(at) + through_staging(at, nbytes, rounds, moving, min(nbytes, at.half))


def allreduce(at: Nodes, nbytes: float) -> float:
    """Return the seconds of an allreduce: all to all, between two ranks, by chain or by stripes."""
    if nbytes <= min(max(GATHER_BYTES, EAGER_BYTES // at.ranks), at.half // at.size):
        crossing = (at.size - at.ranks) * nbytes / at.stream(1)
        way = (at.ranks * nbytes > EAGER_BYTES) * around(at)
        return barrier(at) + way + crossing + at.size * nbytes / at.fold
    if at.size == 2:
        return barrier(at) + nbytes / at.stream(1)
    return min(stripes(at, nbytes), chain(at, nbytes) if at.ranks > 1 else math.inf)


def chain(at: Nodes, nbytes: float) -> float:
    """Return the seconds of a fold from node to node, and of the result's way around the ring."""
    lanes, chunk = at.lanes_of(nbytes), min(at.half // (at.ranks + 1), nbytes)
    share = chunk / lanes
    piece = min(max(share / 4, PIECE_BYTES[0]), PIECE_BYTES[1], share)
    crossing, folding = piece * lanes / at.stream(lanes), at.ranks * piece / at.fold
    first = (at.nodes - 1) * (2 * (at.alpha + at.message + crossing) + folding)
    later = (share / piece - 1) * max(crossing * (1 if at.nodes == 2 else 2), folding)
    rounds = math.ceil(nbytes / chunk)
    return barrier(at) + through_staging(at, nbytes, rounds, rounds * (first + later), nbytes)


def stripes(at: Nodes, nbytes: float) -> float:
    """Return the seconds of an allreduce by stripes; a leader folds a stripe of each payload."""
    lanes, parts = at.lanes_of(nbytes), 2 * at.size + at.nodes
    rounds = math.ceil(nbytes / (at.nodes * (at.half // parts)))
    crossing = (at.ranks + 1) * nbytes * (at.nodes - 1) / at.nodes / at.stream(lanes)
    folding = at.ranks * nbytes / (at.fold * lanes)
    each = to_all(at) + hops(at, lanes, nbytes / rounds / at.nodes)
    moving = rounds * each + crossing + folding
    if at.ranks == 1:
        return barrier(at) + rounds * at.meeting + moving
    return barrier(at) + through_staging(at, nbytes, rounds, moving, nbytes)


def iteration(at: Nodes, private: bool = True) -> float:
    """Return the seconds of all collectives in the SDDP iteration of the documents."""
    points, cuts = STAGES * TRAJECTORIES * POINT * 8, TRAJECTORIES * CUT_BYTES
    gathered = allgatherv(at, points, private) + (STAGES - 1) * allgatherv(at, cuts, private)
    return gathered + allreduce(at, 32) + allreduce(at, 8)


ROWS: dict[str, Callable[[Nodes], float]] = {
    "barrier": barrier,
    "allreduce 32 B": lambda at: allreduce(at, 32),
    "allreduce 16 MB": lambda at: allreduce(at, 16 * MB),
    "allgatherv 64 MB": lambda at: allgatherv(at, 64 * MB),
    "allgatherv 64 MB into regions": lambda at: allgatherv(at, 64 * MB, False),
    "broadcast 64 MB": lambda at: broadcast(at, 64 * MB),
    "broadcast 64 MB into regions": lambda at: broadcast(at, 64 * MB, False),
    "one SDDP iteration": iteration,
    "one SDDP iteration into regions": lambda at: iteration(at, False),
}


def cluster(nodes: int, ranks: int, gbits: float, lanes: int = 0, **terms: float) -> Nodes:
    """Return a cluster's nodes; with 0 lanes, as many as the engine chooses for the cable."""
    chosen = min(math.ceil(gbits / LANE_GBITS), MOST_LANES)
    return replace(Nodes(nodes, ranks, gbits * 1e9 / 8, min(lanes or chosen, ranks)), **terms)


def planned(places: list[Nodes]) -> str:
    """Return the table of what each collective costs, in ms."""
    rows = [[label, *(number(1e3 * seconds_of(at)) for at in places)]
            for label, seconds_of in ROWS.items()]  # fmt: skip
    wire_s = [SDDP_BYTES * (1 - 1 / at.nodes) / (HEADERS * at.link) for at in places]
    rows.append(["its bytes on the cable alone", *(number(1e3 * each) for each in wire_s)])
    titles = [f"{at.nodes} x {at.ranks}, {at.link * 8e-9:.0f} Gb/s, {at.lanes} lane"
              f"{'s' * (at.lanes > 1)}" for at in places]  # fmt: skip
    return table(["ms", *titles], rows)


PAGE_PLACES = [
    cluster(16, 64, 25, 1), cluster(16, 64, 25), cluster(16, 64, 100),
    cluster(256, 128, 25), cluster(256, 128, 100),
]  # fmt: skip
OURS = "tcp"


def here(nodes: int, ranks: int, bits_per_s: float) -> Nodes:
    """Return nodes that are namespaces of one machine, and share its two cores."""
    return Nodes(
        nodes, ranks, bits_per_s / 8, alpha=3e-6, message=1e-6, step=4e-6, socket=1e9, copy=6e9,
        memory=12e9 / nodes, fold=3e9,
    )  # fmt: skip


def figures() -> Iterator[tuple[Nodes, Record]]:
    """Yield each recorded figure, with the terms of the nodes on which it was measured."""
    for figure in load([RECORDED / "nodes.json"]).records:
        nodes, _, ranks, rate, unit = figure.setting.replace(",", "").split()
        bits_per_s = float(rate) * (1e9 if unit == "Gb/s" else 1e6)
        yield here(int(nodes), int(ranks), bits_per_s), figure


def is_checked(figure: Record) -> bool:
    """Tell whether a figure checks a formula; one of few bytes shows only how ranks take turns."""
    return figure.side == OURS and figure.bytes >= KIB


def measured() -> str:
    """Return the table of measured ms; for ours, also what was measured / the formula."""
    cells = {}
    for at, figure in figures():
        ratio = f" ({number(figure.p50_s / ROWS[figure.label](at))})" * is_checked(figure)
        cells[figure.setting, figure.label, figure.side] = number(1e3 * figure.p50_s) + ratio
    settings = sorted({setting for setting, *_ in cells}, key=lambda s: (s[-4:], s))
    rows = [[label, side, *(cells.get((setting, label, side), NONE) for setting in settings)]
            for label in ROWS for side in (OURS, "Open MPI")]  # fmt: skip
    return table(["ms", "", *settings], [row for row in rows if set(row[2:]) != {NONE}])


def check() -> int:
    """Print how far measurements are from formulas; return the exit code."""
    found = {
        f"{figure.setting}: {figure.label}": figure.p50_s / ROWS[figure.label](at)
        for at, figure in figures()
        if is_checked(figure)
    }
    print(*(f"{ratio:.2f}  {name}" for name, ratio in found.items()), sep="\n")
    off = [abs(ratio - 1) for ratio in found.values()]
    print(f"{sum(x <= 0.1 for x in off)} of {len(off)} within 10 %; "
          f"median deviation {100 * statistics.median(off):.1f} %")  # fmt: skip
    return int(not all(0.6 <= ratio <= 1.3 for ratio in found.values()))


TABLES = {"planned": lambda: planned(PAGE_PLACES), "measured": measured}


def main() -> int:
    parser = argparse.ArgumentParser("bench.nodes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("layouts", nargs="*", default=["16x64"], help="nodes x ranks of each")
    add("--gbits", type=float, nargs="+", default=[25, 100], help="of each cable and direction")
    add("--lanes", type=int, default=0, help="leaders of a node; 0: as the engine chooses")
    add("--terms", nargs="+", default=[], metavar="NAME=VALUE", help="of a network that is known")
    add("--check", action="store_true", help="compare the formulas with what was measured")
    options = parser.parse_args()
    if options.check:
        return check()
    terms = {name: float(value) for name, value in (term.split("=") for term in options.terms)}
    layouts = [tuple(map(int, layout.split("x"))) for layout in options.layouts]
    if any(nodes < 2 for nodes, _ in layouts):
        parser.error("the formulas are for 2 nodes or more")
    print(planned([cluster(*layout, gbits, options.lanes, **terms)
                   for layout in layouts for gbits in options.gbits]))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
