"""One leader of a node beside several: do lanes pay where nodes have many cores?

    python -m bench.studies lanes [--layouts 2x8 4x4] [--leaders 1 2 4] [--rates none 25gbit]
    python -m bench.studies lanes --record [--commit COMMIT]

Nodes are network namespaces (tests/network/hosts.py; needs root), each with as many ranks as the
layout says, whose cables have a rate or none. With `--pretended` ranks of one network are kept
apart by COBRE_TCP_PRETEND_NODES instead, and the loopback is the cable. The same processes hold a
communicator for each number of leaders, and these take turns block by block; the slowest rank's
time counts.

Each job's samples are a line of `--file`. With `--record` nothing is measured: the figures of that
file go to `bench/recorded/lanes.json`, and `python -m bench.report` shows them in
docs/benchmarks/growth.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench import machine
from bench.plan import Options
from bench.ranks.timing import measure
from bench.ranks.work import Case, Work
from bench.recording import extra_info, ratios
from bench.studies.study import add_notes, note, parser_of, record_notes

ROOT = Path(__file__).parents[2]
MIB = 2**20
# Label, operation, bytes (of all ranks in an allgatherv), whether data and results lie in regions.
ROWS = [
    ("allreduce 8 MiB", "sum", 8 * MIB, False),
    ("allgatherv 12.9 MB in all", "allgatherv", 12_900_000, False),
    ("allgatherv 12.9 MB in all, into regions", "allgatherv", 12_900_000, True),
    ("broadcast 8 MiB", "broadcast", 8 * MIB, False),
    ("allgatherv 3.2 MB in all, into regions", "allgatherv", 3_200_000, True),
    ("allreduce 32 B", "sum", 32, False),
]
JOB_LIMIT_S = 45
SETTING, ONE = "lanes", "1"


def main() -> None:
    parser = parser_of(__doc__, rounds=12)
    add_notes(parser, "lanes")
    add = parser.add_argument
    add("--layouts", nargs="+", default=["2x8", "4x4"], help="nodes x ranks of each")
    add("--leaders", type=int, nargs="+", default=[1, 2, 4], help="of each node")
    add("--rates", nargs="+", default=["none"], help="of each cable, as for tc; none: no limit")
    add("--pretended", action="store_true", help="one network, whose loopback is the cable")
    options = parser.parse_args()
    if options.record:
        record_notes("lanes", options, infos_of)
        return
    note(options.file, {"machine": machine.description()})
    for layout in options.layouts:
        nodes, ranks = map(int, layout.split("x"))
        for rate in options.rates:
            began = time.monotonic()
            try:
                take_layout(options, nodes, ranks, rate)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(f"{layout}, {rate}: {error}", flush=True)
            print(f"{time.monotonic() - began:.1f} s", flush=True)


class JobFailed(RuntimeError):
    """Ranks have failed; the message has the end of their output."""


def take_layout(options: argparse.Namespace, nodes: int, ranks: int, rate: str) -> None:
    """Measure a layout; write and print what comes."""
    from tests.network.hosts import Network

    rows = [row for row in ROWS if options.only in row[0]]
    where = {"nodes": nodes, "ranks": ranks, "rate": rate, "pretended": options.pretended}
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="cobre-lanes-") as folder:
        network = None
        if not options.pretended:
            network = stack.enter_context(Network(nodes))
            for host in network.hosts:
                host.shape(None if rate == "none" else rate)
        load = os.getloadavg()[0]
        spec = {
            "rows": rows, "leaders": [n for n in options.leaders if n <= ranks],
            "rounds": options.rounds, "block_s": options.block,
        }  # fmt: skip
        taken = run_job(network, nodes, ranks, spec, Path(folder))
        note(options.file, {**where, "load_before": load, "rows": taken})
        for row in taken:
            print(line_of(where, row), flush=True)


def run_job(network, nodes: int, ranks: int, spec: dict, folder: Path) -> list[dict]:
    """Start the ranks, a launcher on each node; return what rank 0 has measured."""
    from cobre_comm.testing.ranks.surroundings import inherited_environment

    (folder / "spec.json").write_text(json.dumps(spec))
    program = [Path(__file__), folder / "spec.json", folder / "taken.json"]
    run = [sys.executable, "-m", "cobre_comm", "run"]
    environment = {**inherited_environment(), "COBRE_TCP_TOKEN": secrets.token_hex(32)}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), environment.get("PYTHONPATH")])
    )
    if nodes * ranks > (os.cpu_count() or 1):
        environment["COBRE_COMM_SPIN_US"] = "0"  # a rank sees the cores, not the other nodes
    if network is None:
        of_rank = ",".join(str(node) for node in range(nodes) for _ in range(ranks))
        environment["COBRE_TCP_PRETEND_NODES"] = of_rank
        places = [(ExitStack(), ["-n", nodes * ranks])]
    else:
        first = network.hosts[0].address
        places = [
            (host.inside(), ["-n", ranks, "--nnodes", nodes, "--node-rank", node,
                             "--coordinator", first])
            for node, host in enumerate(network.hosts)
        ]  # fmt: skip
    jobs = []
    with (folder / "output").open("w") as output:
        for place, words in places:
            command = [*run, *words, "--backend", "tcp", *program]
            with place:
                jobs.append(
                    subprocess.Popen(
                        list(map(str, command)), cwd=folder, env=environment,
                        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    )
                )  # fmt: skip
        until = time.monotonic() + JOB_LIMIT_S
        try:
            codes = [job.wait(timeout=max(0.1, until - time.monotonic())) for job in jobs]
        finally:
            for job in jobs:
                job.terminate()
                job.wait(timeout=20)
    if any(codes):
        raise JobFailed(f"exit codes {codes}: {(folder / 'output').read_text()[-3000:]}")
    return json.loads((folder / "taken.json").read_text())


def rank_main(spec: str, out: str) -> None:
    """Take all rows on this rank; rank 0 writes them."""
    from bench.ranks.sides import InPlace, Ours
    from cobre_comm import ReduceOp, TcpConfig, create_communicator

    asked = json.loads(Path(spec).read_text())
    given = TcpConfig.from_env()
    comms = {}
    for step, leaders in enumerate(asked["leaders"]):
        # The launcher's port is the first one's; no other program of this network listens.
        config = dataclasses.replace(given, leaders=leaders, port=given.port + step)
        comms[str(leaders)] = create_communicator(config)
    anyone = next(iter(comms.values()))

    class World:
        rank, size = anyone.rank, anyone.size

        def slowest(self, seconds):
            found = np.empty(1)
            anyone.allreduce(np.array([seconds]), found, ReduceOp.MAX)
            return float(found[0])

    world, how_long = World(), Options(asked["rounds"], asked["block_s"], most_s=30.0)
    taken = []
    for label, operation, nbytes, in_region in asked["rows"]:
        share = nbytes // (world.size if operation == "allgatherv" else 1) // 8 * 8
        made = InPlace if in_region else Ours
        works = {
            name: Work(Case(label, operation, share), made(comm), world)
            for name, comm in comms.items()
        }
        found = measure({n: work.timed for n, work in works.items()}, world.slowest, how_long)
        for work in works.values():
            work.verify()
        taken.append({"label": label, **found})
        if world.rank == 0:
            Path(out).write_text(json.dumps(taken))
    for comm in comms.values():
        comm.close()


def line_of(where: dict, row: dict) -> str:
    """Return the medians of a row in a line."""
    ms = {name: 1e3 * statistics.median(s) for name, s in row["samples_s"].items()}
    shown = "  ".join(f"{name}: {each:9.3f}" for name, each in ms.items())
    return f"{where['nodes']} x {where['ranks']} {where['rate']:8} {row['label']:40} ms  {shown}"


def setting_of(line: dict) -> str:
    """Return the words by which a page finds the rows of a layout."""
    cable = "loopback" if line["pretended"] else line["rate"].replace("none", "no limit")
    return f"{SETTING}, {line['nodes']} x {line['ranks']}, {cable}"


def infos_of(line: dict) -> list[dict]:
    """Return the facts of a layout's figures, each beside one leader."""
    infos = []
    for row in line.get("rows", []):
        (operation,) = {operation for label, operation, *_ in ROWS if label == row["label"]}
        first = row["samples_s"].get(ONE)
        for name, samples in row["samples_s"].items():
            side = f"{name} leader{'s' * (name != ONE)}"
            compared = {"1 leader": ratios(samples, first)} if first and name != ONE else {}
            infos.append(
                extra_info(samples, label=row["label"], operation=operation,
                           ranks=line["nodes"] * line["ranks"], side=side, setting=setting_of(line),
                           calls=row["calls"][name], ratio_to=compared)
            )  # fmt: skip
    return infos


if __name__ == "__main__":
    import numpy as np

    rank_main(*sys.argv[1:])
