"""Tables in pages that are written by hand, between `<!-- KIND NAME -->` and `<!-- end -->`.

`table NAME` is a table of :data:`TABLES`, `run NAME` has the facts of a recorded run, and `targets
fresh` the rows of the first targets. `speed growth` has the rows that readers ask for first, with a
core for each rank, and `beside others` has rows beside other packages. `gain sddp` is what more
ranks gain. `cobre NAME` and `nodes NAME` are tables of the modules `bench.cobre.page` and
`bench.nodes`. `docs/refresh.py` writes these tables into the pages.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench import nodes
from bench.cobre import page as cobre
from bench.peers import PEERS
from bench.plan import FLAT, FRESH, IDEAL, OURS, OVER_SHM, WAYS
from bench.report.data import Record, Results
from bench.report.head import cores, facts
from bench.report.targets import COLUMNS, grid
from bench.report.text import NONE, duration, number, span, table

MPI_LIMIT, NJIT_LIMIT = 1.05, 1.0
# Rows of the table in README.md: the label, the unit, the part of the study `growth`.
SPEED = (
    ("barrier", "µs", "python"),
    ("allreduce 32 B", "µs", "python"),
    ("allgatherv 12.9 MB in all", "ms", "python"),
    ("broadcast 8 MiB", "ms", "python"),
    ("a job of one allreduce", "s", "starts"),
)
SPEED_SDDP = "an SDDP iteration"
SPEED_RANKS = (1, 2, 4, 8, 16)
SPEED_MPIS = ("openmpi", "mpich")
# Rows beside other packages: a text, the peer (None: the fastest MPI), the labels.
BESIDE = (
    ("mpi4py, on the fastest of three MPIs", None,
     ("allreduce 32 B", "allgatherv 12.9 MB", "broadcast 8 MiB")),
    ("mpi4py on Open MPI, ours over that MPI", "Open MPI", ("broadcast 32 B", "allreduce 8 MiB")),
    ("numba-mpi on Open MPI, ours over that MPI", "numba-mpi",
     ("allreduce 32 B in @njit", "broadcast 32 B in @njit")),
    ("gloo of torch, ours over sockets too", "gloo", ("allreduce 32 B", "allreduce 8 MiB")),
)  # fmt: skip
FOLD_LIMITS = {"8 B": 1.1, "32 B": 1.1, "4 KiB": 1.1, "32 KiB": 1.5, "512 KiB": 1.5, "8 MiB": 1.5}


@dataclass(frozen=True)
class Column:
    """A side beside its peer in a job; without a peer, the column shows the side's time alone."""

    title: str
    ranks: int
    beside: str | None
    setting: str
    peer: str | None
    side: str = OURS

    def record(self, results: Results, label: str) -> Record | None:
        """Return the figure of the side, if there is one."""
        found = results.find(label=label, ranks=self.ranks, setting=self.setting, side=self.side)
        mine = [r for r in found if r.beside == self.beside]
        return next((r for r in mine if self.peer is None or self.peer in r.ratio_to), None)

    def cell(self, results: Results, label: str, unit: str, limit: float | None) -> str:
        """Return a cell such as ``0.38 / 0.55 = 0.70``; a ratio that is over the limit is bold."""
        mine = self.record(results, label)
        if mine is None:
            return NONE
        if self.peer is None:
            times = [duration(each, unit) for each in sorted(mine.by_run.values())]
            over = f" ({times[0]} to {times[-1]})" if len(times) > 1 else ""
            return duration(mine.p50_s, unit) + over
        found = mine.ratio_to[self.peer]
        ratio = found.median
        theirs = results.find(
            label=label, ranks=self.ranks, beside=self.beside, setting=self.setting, side=self.peer
        )
        times = f"{duration(mine.p50_s, unit)} / {duration(theirs[-1].p50_s, unit)}"
        bold = "**" if limit is not None and ratio > limit else ""
        equals = "=" if found.runs == 1 else "~"
        return f"{times} {equals} {bold}{number(ratio)}{bold}{span(found)}"


@dataclass(frozen=True)
class Table:
    """Columns of the same rows, in the order of the figures; ``njit`` chooses which rows."""

    columns: tuple[Column, ...]
    unit: str = "µs"
    njit: bool = False
    limited: bool = False

    def text(self, results: Results) -> str:
        settings = {column.setting for column in self.columns}
        labels = dict.fromkeys(r.label for r in results.records if r.setting in settings)
        rows = []
        for label in labels:
            if ("in @njit" in label) != self.njit:
                continue
            limit = limit_of(label) if self.limited else None
            cells = [column.cell(results, label, self.unit, limit) for column in self.columns]
            if any(cell != NONE for cell in cells):
                rows.append([label, *cells])
        return table(["", *(column.title for column in self.columns)], rows)


def limit_of(label: str) -> float | None:
    """Return the limit of our time / the library's over MPI; an iteration has no limit."""
    if "in @njit" in label:
        return NJIT_LIMIT
    operation, _, size = label.partition(" ")
    if operation == "allreduce":
        return FOLD_LIMITS.get(size)
    return MPI_LIMIT if operation != "one" else None


def columns(setting: str, jobs: list[tuple[int, str]], peer: str = "", side: str = OURS):
    """Return a column for each job; the peer is the library, unless another peer is named."""
    return tuple(
        Column(f"{ranks} ranks, {PEERS[lib]}", ranks, lib, setting, peer or PEERS[lib], side)
        for ranks, lib in jobs
    )


FOUR = [(2, "openmpi"), (2, "mpich"), (4, "openmpi"), (4, "mpich")]
NODES = "over MPI, nodes "
ON_NODES = (
    *columns(f"{NODES}0,1", FOUR[:2]),
    *columns(f"{NODES}0,1,2,3", [(4, "openmpi")]),
    Column("4 ranks, Open MPI, two levels", 4, "openmpi", f"{NODES}0,0,1,1", "Open MPI"),
)
SOCKETS = "over sockets"
CORES = (2, 4, 8, 12, 16)


def grown(part: str, library: str = "openmpi", ranks=CORES, peer: str = "", side: str = OURS):
    """Return a column for each number of ranks; each rank had a core of its own."""
    return columns(f"growth, {part}", [(n, library) for n in ranks], peer, side)


def leaders(layout: str, ranks: int, cable: str):
    """Return two columns: two leaders of a node beside one leader, and four leaders beside one."""
    return tuple(
        Column(f"{layout}, {n} leaders / 1", ranks, None, f"lanes, {layout}, {cable}", "1 leader",
               f"{n} leaders")
        for n in (2, 4)
    )  # fmt: skip


def _ranks(count: int) -> str:
    return f"{count} rank{'s' * (count > 1)}"


TABLES = {
    "shm-njit": Table(
        columns("", [(2, "openmpi"), (2, "mpich"), (2, "impi")], "numba-mpi"), njit=True
    ),
    "growth-python": Table(grown("python")),
    "growth-mpich": Table(grown("python", "mpich", (2, 8, 16))),
    "growth-njit": Table(grown("njit", peer="numba-mpi"), njit=True),
    "growth-sockets": Table(grown("over sockets", ranks=(2, 8, 16), side=FLAT)),
    "growth-starts": Table(
        tuple(
            Column(f"{n} ranks, {peer}", n, None, "growth, starts", peer)
            for peer in ("Open MPI", "MPICH")
            for n in (2, 4, 8, 16)
        ),
        unit="s",
    ),
    "growth-sddp": Table(
        tuple(Column(_ranks(n), n, None, "growth, sddp", None) for n in (1, *CORES)),
        unit="ms",
    ),
    "lanes-16": Table((*leaders("2 x 8", 16, "no limit"), *leaders("4 x 4", 16, "no limit")), "ms"),
    "lanes-12": Table(leaders("2 x 6", 12, "no limit"), "ms"),
    "lanes-25": Table((*leaders("2 x 8", 16, "25gbit"), *leaders("4 x 4", 16, "25gbit")), "ms"),
    "lanes-10": Table(leaders("2 x 8", 16, "10gbit"), "ms"),
    "tcp": Table(
        (
            *columns(SOCKETS, FOUR[::2], side=FLAT),
            Column("2 ranks, gloo", 2, None, SOCKETS, None, "gloo"),
            Column("4 ranks, gloo", 4, None, SOCKETS, None, "gloo"),
        )
    ),
    "one-node": Table(
        tuple(
            Column(f"{ranks} ranks, tcp / shm", ranks, "openmpi", "on one node", OVER_SHM)
            for ranks in (2, 4)
        )
    ),
    "hosts": Table(
        tuple(
            Column(f"ring / {peer}", 4, "openmpi", "hosts of 1 Gb/s", peer, "ring")
            for peer in ("star", "Open MPI")
        ),
        unit="ms",
    ),
    "uneven": Table(
        tuple(
            Column(f"{ranks} ranks, {words}", ranks, "openmpi", "", IDEAL, side)
            for ranks in (2, 4)
            for side, words in (*zip(WAYS, WAYS, strict=True), (OURS, "by last cost"))
        ),
        unit="ms",
    ),
    "mpi": Table(columns("over MPI", FOUR), limited=True),
    "mpi-fresh": Table(columns("over MPI, data written before each call", FOUR[:2])),
    "mpi-njit": Table(columns("over MPI", FOUR, "numba-mpi"), njit=True, limited=True),
    "nodes": Table(ON_NODES),
    "nodes-njit": Table(columns(f"{NODES}0,1", FOUR[:2], "numba-mpi"), njit=True),
}


def targets_text(results: Results, name: str) -> str:
    """Return our times and those of the fastest peers, with the data that ``name`` says."""
    setting = {"fresh": FRESH, "same": ""}[name]
    rows = []
    for label, cells in grid(results).items():
        two, four = (cells[COLUMNS.index((ranks, setting))] for ranks in (2, 4))
        job = (two.ranks, two.beside, "" if label == "barrier" else setting)
        sides = [r for r in results.records if (r.label, r.job) == (label, job)]
        times = [
            next((duration(r.p50_s, "µs") for r in sides if r.side == side), NONE)
            for side in (OURS, PEERS.get(two.beside))
        ]
        ratios = [NONE if c.value is None else number(c.value) + span(c) for c in (two, four)]
        names = [PEERS.get(cell.beside, NONE) for cell in (two, four)]
        rows.append([label, *times, names[0], ratios[0], ratios[1], names[1]])
    return table(["", "ours, µs", "theirs, µs", "of", "2 ranks", "4 ranks", "beside"], rows)


def speed_text(results: Results, name: str) -> str:
    """Return the rows that a reader asks for first, and where and when they were measured.

    A row stands beside the fastest MPI for each number of ranks; an iteration of SDDP stands alone.
    """
    alone = [Column("", n, None, "growth, sddp", None) for n in SPEED_RANKS]
    rows = [[f"{SPEED_SDDP}, ms", *(c.cell(results, SPEED_SDDP, "ms", None) for c in alone)]]
    rows += [
        [f"{label}, {unit}", *(_beside_fastest(results, label, unit, part, n) for n in SPEED_RANKS)]
        for label, unit, part in SPEED
    ]
    few = [n for n in SPEED_RANKS if len(_beside_mpis(results, SPEED[0][0], "python", n)) == 1]
    run = results.of_record("growth.json")[-1]
    known = run.machine["versions"]
    mpis = " and ".join(f"{PEERS[each]} {known[each]}" for each in SPEED_MPIS)
    caption = (
        f"Version {known['cobre-comm']}, {run.when[:10]}, {run.machine['cpu_model']}, "
        f"{cores(run.machine)}, one for each rank. A cell names the faster of {mpis}"
    )
    if few:
        ranks = ", ".join(map(str, few))
        caption += f"; collectives of {ranks} ranks ran beside {PEERS[SPEED_MPIS[0]]} alone"
    header = ["ours / theirs = ratio", *map(_ranks, SPEED_RANKS)]
    return f"{caption}.\n\n{table(header, rows)}"


def gain_text(results: Results, name: str) -> str:
    """Return how many times as fast as one rank more ranks are, and that gain over the ideal."""
    counts = (1, *CORES)
    found = results.find(label=SPEED_SDDP, setting=f"growth, {name}", side=OURS)
    times = {record.ranks: record.p50_s for record in found}
    gains = {n: times[1] / times[n] for n in counts}
    rows = [
        [f"{SPEED_SDDP}, ms", *(duration(times[n], "ms") for n in counts)],
        ["times as fast", *(number(gains[n]) for n in counts)],
        ["of the ideal", *(number(gains[n] / n) for n in counts)],
    ]
    run = results.of_record("growth.json")[-1]
    title = f"version {run.machine['versions']['cobre-comm']}, {run.when[:10]}"
    return table([title, *map(_ranks, counts)], rows)


def _beside_mpis(results: Results, label: str, part: str, ranks: int) -> list[Column]:
    """Return a column for each MPI beside which a row of the study `growth` was measured."""
    beside = [None] * len(SPEED_MPIS) if part == "starts" else SPEED_MPIS
    found = [
        Column("", ranks, library, f"growth, {part}", PEERS[mpi])
        for library, mpi in zip(beside, SPEED_MPIS, strict=True)
    ]
    return [each for each in found if each.record(results, label)]


def _beside_fastest(results: Results, label: str, unit: str, part: str, ranks: int) -> str:
    """Return the cell beside the fastest MPI, with which our ratio is the largest."""
    found = _beside_mpis(results, label, part, ranks)
    if not found:
        return NONE
    worst = max(found, key=lambda each: each.record(results, label).ratio_to[each.peer].median)
    return f"{worst.cell(results, label, unit, limit=None)} {worst.peer}"


def beside_text(results: Results, name: str) -> str:
    """Return our times over those of other packages among which a reader chooses."""
    rows = [
        [words, label, *(_beside(results, label, ranks, peer) for ranks in (2, 4))]
        for words, peer, labels in BESIDE
        for label in labels
    ]
    return table(["beside", "measured", "2 ranks", "4 ranks"], rows)


def _beside(results: Results, label: str, ranks: int, peer: str | None) -> str:
    """Return our time over a peer's time. gloo was measured in processes of its own."""
    if peer is None:
        cell = grid(results)[label][COLUMNS.index((ranks, FRESH))]
        return number(cell.value) + span(cell)
    if peer == "gloo":
        ours, theirs = (
            Column("", ranks, library, SOCKETS, None, side).record(results, label).p50_s
            for library, side in (("openmpi", FLAT), (None, peer))
        )
        return number(ours / theirs)
    ratio = Column("", ranks, "openmpi", "over MPI", peer).record(results, label).ratio_to[peer]
    return number(ratio.median) + span(ratio)


MAKERS = {
    "beside": beside_text,
    "table": lambda results, name: TABLES[name].text(results),
    "run": lambda results, name: table(["", ""], facts(results.of_record(f"{name}.json"))),
    "targets": targets_text,
    "speed": speed_text,
    "gain": gain_text,
    "cobre": lambda results, name: cobre.text_of(name),
    "nodes": lambda results, name: nodes.TABLES[name](),
}
