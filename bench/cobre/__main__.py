"""Train the same cases by the SDDP example and by Cobre, in turn, and write what they took.

    python -m bench.cobre --python .venv-cobre/bin/python --out bench/results/cobre.json

Both get the same random cases and openings, the same number of forward passes and iterations, and
as many ranks as threads. Forward passes draw other openings, so bounds differ by iteration; each
round has another seed. Cobre trains with each of `SELECTIONS`. `bench.cobre.page` makes the tables.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SDDP = HERE.parents[1] / "examples" / "sddp"
sys.path.insert(0, str(SDDP))

from case.random_case import Shape, generate  # noqa: E402
from case.read import parse_case  # noqa: E402
from cobre.write import write_case  # noqa: E402

from bench.cobre.page import OURS, training_row  # noqa: E402
from bench.machine import description as machine  # noqa: E402

SELECTIONS = (None, "dynamic", "lml1")  # None is Cobre's default: every cut is a row
SEED = 1

LONGER = 2
"""For each iteration of Cobre, ours trains so many: it may need more to reach Cobre's bound."""


class Size(NamedTuple):
    """A case, and how it is trained."""

    hydros: int
    stages: int
    openings: int = 20
    iterations: int = 10
    forward_passes: int = 8

    @property
    def solves(self) -> int:
        """Return how many stage problems these iterations have; ours leaves out equal points."""
        backward = (self.stages - 1) * self.openings
        each = self.forward_passes * (self.stages + backward) + self.openings
        return self.iterations * each


SIZES = (Size(4, 24), Size(8, 24), Size(20, 24), Size(40, 24), Size(80, 12), Size(160, 12))


def train_ours(case: Path, size: Size, ranks: int, seed: int, folder: Path) -> dict:
    """Train by the example, for twice as many iterations; return what the example reports."""
    out = folder / "ours.json"
    words = "run", "-n", ranks, "--backend", "shm", SDDP / "train.py", case, "--quiet"
    limits = "--iterations", LONGER * size.iterations, "--forward-passes", size.forward_passes
    memory = run(
        sys.executable, "-m", "cobre_comm", *words, *limits, "--seed", seed, "--out", out
    )  # fmt: skip
    told = json.loads(out.read_text())
    seconds = told["iteration_s"]
    return {
        "training_s": sum(seconds[: size.iterations]),
        "solves": size.solves,
        "memory_bytes": memory,
        "bounds": told["decimal"]["lower_bound"],
        "seconds": seconds,
    }


def train_cobre(python: Path, written: Path, threads: int, seed: int, folder: Path) -> dict:
    """Train by Cobre; return what Cobre reports, with the seconds of each iteration."""
    out = folder / "cobre.json"
    settings = json.loads((written / "config.json").read_text())
    settings["training"]["tree_seed"] = seed  # the seed of forward passes; a file has the openings
    (written / "config.json").write_text(json.dumps(settings))
    memory = run(python, HERE / "run_cobre.py", written, threads, out)
    told = json.loads(out.read_text())
    ends = told["seconds"]
    told["seconds"] = [end - begin for begin, end in zip([0.0, *ends], ends, strict=False)]
    return told | {"memory_bytes": memory}


def run(*words: object) -> int:
    """Run a command; return the peak memory, in bytes, of the largest process of the command.

    If the command fails, print its output and end this program.
    """
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([str(word) for word in words], stdout=said, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if child.returncode:
            sys.exit(f"{' '.join(map(str, words))} failed:\n{said.read().decode()}")
    return usage.ru_maxrss * 1024


def measure(size: Size, ranks: int, rounds: int, python: Path) -> dict:
    """Train one case in each way in turn, with another seed in each round; return all runs."""
    shape = Shape(size.hydros, max(3, size.hydros * 5 // 8), size.stages, size.openings)
    data = json.dumps(generate(shape, SEED)).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "case.json"
        path.write_bytes(data)
        written = {selection: folder / str(selection) for selection in SELECTIONS}
        case = parse_case(data, path.name)
        for selection, place in written.items():
            write_case(case, place, size.forward_passes, size.iterations, selection)
        ways = {OURS: lambda seed: train_ours(path, size, ranks, seed, folder)} | {
            f"Cobre, {selection or 'every cut'}": (
                lambda seed, place=place: train_cobre(python, place, ranks, seed, folder)
            )
            for selection, place in written.items()
        }
        ways[OURS](1)  # this call compiles
        runs: dict[str, list[dict]] = {way: [] for way in ways}
        for number in range(1, rounds + 1):
            for way in list(ways) if number % 2 else reversed(list(ways)):
                runs[way].append(ways[way](number))
    return {"size": size._asdict(), "ranks": ranks, "runs": runs}


def main() -> None:
    """Measure the cases, and write all figures after each case."""
    parser = argparse.ArgumentParser(prog="python -m bench.cobre", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--python", type=Path, required=True, help="one that has cobre-python")
    parser.add_argument("--out", type=Path, required=True, help="JSON of all figures")
    parser.add_argument("--hydros", type=int, nargs="*", help="of the cases; default: all")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    told = {"machine": machine(), "cases": []}
    for size in SIZES:
        for ranks in options.ranks:
            if options.hydros is None or size.hydros in options.hydros:
                measured = measure(size, ranks, options.rounds, options.python)
                told["cases"].append(measured)
                print(*training_row(measured), sep=" | ", flush=True)
                options.out.write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
