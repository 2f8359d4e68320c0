"""Figures between nodes: kept in a file, shown beside the bytes that cables must carry."""

from __future__ import annotations

import json
import re
import statistics
from itertools import pairwise
from pathlib import Path

from bench import machine
from bench.ranks.work import TRAJECTORIES
from bench.report.text import NONE, number, table

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "nodes.md"
KEY = ("nodes", "ranks", "rate", "delay", "system", "label")
OURS = "tcp"
TITLES = {
    OURS: "tcp", "before": "tcp before", "mpi": "mpi", "peer": "Open MPI",
}  # fmt: skip
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bits_per_s(rate: str) -> float:
    """Return the bits per second of a rate in the words of tc."""
    amount, unit = re.fullmatch(r"([\d.]+)([kmg]bit)", rate).groups()
    return float(amount) * UNITS[unit]


def least_bytes(operation: str, nbytes: int, nodes: int, ranks: int) -> float:
    """Return the bytes that the busiest cable must carry at least, in one direction.

    A node must receive the contributions of the others. In an allgatherv of D bytes in all, these
    are D less its own part; in a broadcast all D; in an allreduce the n bytes of the result.
    Contributions are equal, but for an SDDP iteration, whose trajectories are cut into blocks.
    """
    if operation == "allgatherv":
        return nbytes * (nodes - 1) / nodes
    if operation == "sddp":
        size = nodes * ranks
        edges = [node * ranks * TRAJECTORIES // size for node in range(nodes + 1)]
        return nbytes * (1 - min(b - a for a, b in pairwise(edges)) / TRAJECTORIES)
    return nbytes


class Figures:
    """The figures of a file.

    Parameters
    ----------
    path : Path
        Where they are kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        told = json.loads(path.read_text()) if path.exists() else {"figures": []}
        self._machine = told.get("machine", {})
        self.all = {tuple(each[name] for name in KEY): each for each in told["figures"]}

    def add(self, where: dict, row: dict, told: list[dict], number: int) -> None:
        """Add the figure of a row, from the results of all ranks of a job.

        Parameters
        ----------
        where : dict
            Layout, cables and system.
        row : dict
            As ``rank.py`` takes it.
        told : list of dict
            The results of each rank.
        number : int
            The number of the row in the job.
        """
        taken = [each["rows"][number] for each in told]
        by_host = {each["host"]: row for each, row in zip(told, taken, strict=True)}
        figure = {
            **where,
            "label": row["label"],
            "operation": row["operation"],
            "nbytes": row["nbytes"],
            "in_region": row["in_region"],
            "seconds": _rounded(statistics.median(taken[0]["samples_s"])),
            "samples": [_rounded(each) for each in taken[0]["samples_s"]],
            "cpu": [_rounded(each["cpu_s"]) for each in taken],  # of each rank
            # of each host: from the switch, and to it
            "received": [round(by_host[host]["received"]) for host in sorted(by_host)],
            "sent": [round(by_host[host]["sent"]) for host in sorted(by_host)],
            "commit": machine.description()["commit"] if where["system"] != "before" else "",
        }
        self.all[tuple(figure[name] for name in KEY)] = figure

    def line(self, where: dict, label: str) -> str:
        """Return a figure in a line."""
        each = self.all[tuple({**where, "label": label}[name] for name in KEY)]
        layout = f"{each['nodes']} x {each['ranks']}"
        return (
            f"{layout:7} {each['system']:7} {label:31} {1e3 * each['seconds']:10.3f} ms  "
            f"cables {busiest(each) / 1e6:8.3f} MB, least {least(each) / 1e6:8.3f} MB"
        )

    def write(self) -> None:
        """Write all figures to the file."""
        self._path.parent.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(self.all[key]) for key in sorted(self.all))
        self._machine = {
            k: v
            for k, v in machine.description().items()
            if k in ("cpu_model", "cores", "kernel", "versions")
        }
        told = json.dumps(self._machine)
        self._path.write_text(f'{{"machine": {told},\n"figures": [\n{lines}\n]}}\n')

    def table(self, rate: str = "1gbit", delay: str = "") -> str:
        """Return times in ms and, in parentheses, MB on the busiest cable, beside the least.

        The last column is what a call of ours takes rank 1, a follower, in ms of its core.
        """
        known = [
            each for each in self.all.values() if (each["rate"], each["delay"]) == (rate, delay)
        ]
        systems = [name for name in TITLES if any(each["system"] == name for each in known)]
        rows = []
        for nodes, ranks, label in dict.fromkeys(
            (each["nodes"], each["ranks"], each["label"]) for each in sorted(known, key=_order)
        ):
            found = {e["system"]: e for e in known
                     if (e["nodes"], e["ranks"], e["label"]) == (nodes, ranks, label)}  # fmt: skip
            any_one = next(iter(found.values()))
            bound = least(any_one)
            cells = [_cell(found.get(name)) for name in systems]
            least_cell = (
                f"{number(8e3 * bound / bits_per_s(rate))} ({number(bound / 1e6)})"
                if bound > 1000
                else NONE
            )
            follower = _cpu_of_follower(found.get(OURS))
            rows.append([f"{nodes} x {ranks}", label, *cells, least_cell, follower])
        header = ["nodes x ranks", "", *(TITLES[name] for name in systems)]
        return table([*header, "at least", "a follower's core"], rows)

    def filled(self, text: str) -> str:
        """Return a page with its tables made anew."""
        return re.sub(
            r"(<!-- nodes (\w+) ?(\w*) -->\n).*?(<!-- end -->)",
            lambda mark: f"{mark[1]}{self.table(mark[2], mark[3])}\n{mark[4]}",
            text,
            flags=re.DOTALL,
        )


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.6g}")


def _order(figure: dict) -> tuple:
    return figure["nodes"], figure["ranks"], -figure["nbytes"], figure["label"]


def busiest(figure: dict) -> int:
    """Return the bytes that the busiest direction of a cable has carried."""
    return max(*figure["received"], *figure["sent"])


def least(figure: dict) -> float:
    """Return the bytes that the busiest cable must carry for a figure."""
    return least_bytes(*(figure[name] for name in ("operation", "nbytes", "nodes", "ranks")))


def _cpu_of_follower(figure: dict | None) -> str:
    if figure is None or figure["ranks"] == 1 or "cpu" not in figure:
        return NONE
    return number(1e3 * figure["cpu"][1])


def _cell(figure: dict | None) -> str:
    if figure is None:
        return NONE
    return f"{number(1e3 * figure['seconds'])} ({number(busiest(figure) / 1e6)})"
