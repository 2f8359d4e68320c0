"""Memory of an SDDP training whose cuts fill gigabytes: one rank beside several on one machine.

    python -m bench.studies sddp_memory --gigabytes 2 --ranks 1 4

Trains a random case for a few iterations, and adds copies below its cuts, which never bind. Goes on
from that checkpoint for an iteration, and adds up `/proc/PID/smaps_rollup` of all ranks. Prints the
largest sums of PSS and RSS. In PSS, a page that n processes have counts 1/n in each; in RSS it
counts in each. Prints the digest of the cuts too, which must not depend on the number of ranks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from cobre_comm.check.sddp import example_folder

EXAMPLE = example_folder()
SIZES = {"hydros": 3, "thermals": 2, "stages": 12, "openings": 2}
FIRST, MORE = 3, 1  # iterations before and after the cuts are made many
BETWEEN_S = 0.1
LONGEST_S = 600


def main() -> None:
    parser = argparse.ArgumentParser(prog="sddp_memory", description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of cuts (default: 2)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 4])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        case, small = Path(scratch) / "case.json", Path(scratch) / "small.ckpt"
        sizes = [word for name, n in SIZES.items() for word in (f"--{name}", str(n))]
        subprocess.run([sys.executable, EXAMPLE / "generate.py", case, *sizes], check=True)
        train(1, case, small, FIRST)
        print(f"{'ranks':>5} {'sum of PSS':>12} {'sum of RSS':>12}  cuts sha256")
        for ranks in arguments.ranks:
            large = Path(scratch) / "large.ckpt"
            enlarge(small, large, arguments.gigabytes)
            pss, rss, digest = train(ranks, case, large, FIRST + MORE)
            print(f"{ranks:5d} {pss / 1e9:9.3f} GB {rss / 1e9:9.3f} GB  {digest[:16]}", flush=True)


def enlarge(small: Path, large: Path, gigabytes: float) -> None:
    """Write a checkpoint of so many gigabytes: the cuts of `small`, and copies below them."""
    sys.path.insert(0, str(EXAMPLE))
    from checkpoint.file import read_header, write_checkpoint

    with small.open("rb") as file:
        header = read_header(file)
        body = np.frombuffer(file.read(), np.uint8)[:-32].view(np.float64)
    cuts = body[-sum(header.counts) * (header.hydros + 1) :]
    stages = sum(count > 0 for count in header.counts)
    count = int(gigabytes * 1e9 / (8 * stages * (header.hydros + 1)))

    def rows():
        yield body[: body.size - cuts.size]
        at = 0
        for present in header.counts:
            for h in range(header.hydros + 1 if present else 0):
                row = np.tile(cuts[at : at + present], -(-count // present))[:count]
                if h == header.hydros:
                    row[present:] = -1.0 - np.arange(count - present)
                    row[present:] += cuts[at : at + present].min()
                yield row
                at += present

    write_checkpoint(
        large, replace(header, counts=[count * (n > 0) for n in header.counts]), rows()
    )


def train(ranks: int, case: Path, checkpoint: Path, iterations: int) -> tuple[int, int, str]:
    """Train; return the largest sums of PSS and RSS, in bytes, and the digest of the cuts."""
    out = checkpoint.with_suffix(".json")
    command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), EXAMPLE / "train.py"]
    command += [case, "--quiet", "--forward-passes", "4", "--iterations", str(iterations)]
    command += ["--checkpoint", checkpoint, "--out", out]
    largest = [0, 0]
    with subprocess.Popen(command) as launcher:
        deadline = time.monotonic() + LONGEST_S
        while launcher.poll() is None and time.monotonic() < deadline:
            for i, now in enumerate(sums(launcher.pid)):
                largest[i] = max(largest[i], now)
            time.sleep(BETWEEN_S)
    return largest[0], largest[1], json.loads(out.read_text())["cuts_sha256"]


def sums(launcher: int) -> tuple[int, int]:
    """Return the sums of PSS and RSS of all ranks under a launcher, in bytes."""
    pss = rss = 0
    for process in psutil.Process(launcher).children(recursive=True):
        try:
            if str(EXAMPLE / "train.py") not in process.cmdline():
                continue
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except (psutil.Error, OSError):
            continue  # it has ended meanwhile
        kilobytes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
        pss, rss = pss + 1024 * kilobytes["Pss:"], rss + 1024 * kilobytes["Rss:"]
    return pss, rss
