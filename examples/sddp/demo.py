"""What `make demo` shows: a case with a known optimum, then a larger case on 1 rank and all cores.

python demo.py FOLDER [--case CASE]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from case.random_case import Shape, generate
from files import write_text

EXAMPLE = Path(__file__).resolve().parent
KNOWN = EXAMPLE / "cases" / "gen_h4_t5_k3.json"
LARGER, ITERATIONS, FORWARD_PASSES = Shape(8, 6, 24, 20), 28, 32
"""The larger case, and its training, which takes some seconds on one core."""
FIRST = ("known_optimum", "known_bound", "relative_difference")
"""The entries for which a reader of the result looks first."""
MOST = 8
"""The most ranks for the larger case, which has too little work for more ranks."""


def train(ranks: int, case: Path, out: Path, *words: object) -> dict[str, Any]:
    """Train a case on so many ranks over shared memory, and return its result."""
    launch = [sys.executable, "-m", "cobre_comm", "run", "-n", ranks, "--backend", "shm"]
    command = [*launch, EXAMPLE / "train.py", case, "--out", out, *words]
    done = subprocess.run(list(map(str, command)))
    if done.returncode != 0:
        sys.exit(done.returncode)
    result: dict[str, Any] = json.loads(out.read_text())
    return result


def compare(folder: Path, all_cores: int) -> dict[str, Any]:
    """Train the larger case on one rank and on all cores; return both times.

    The program ends with exit code 1 if the cuts differ.
    """
    case = folder / "larger.json"
    write_text(case, json.dumps(generate(LARGER, seed=1)) + "\n")
    seconds: dict[str, float] = {}
    digests: set[str] = set()
    for ranks in (1, all_cores):
        print(f"training a larger case on {told(ranks)}: {told_size()}", flush=True)
        words = "--iterations", ITERATIONS, "--forward-passes", FORWARD_PASSES, "--quiet"
        result = train(ranks, case, folder / f"larger-{ranks}.json", *words)
        seconds[str(ranks)] = result["wall_s"]
        digests.add(result["cuts_sha256"])
        print(f"trained in {result['wall_s']:.2f} s", flush=True)
    alone, together = seconds.values()
    if len(digests) > 1:
        sys.exit("demo.py: error: the cuts differ; this is a bug of cobre_comm or of the example")
    [digest] = digests
    print(f"{told(all_cores)} are {alone / together:.2f} times as fast as one", flush=True)
    print(f"cuts sha256 of both: {digest}", flush=True)
    return {"larger_case_s": seconds, "larger_case_cuts_sha256": digest}


def told(ranks: int) -> str:
    """Return a number of ranks in words."""
    return f"{ranks} rank{'s' if ranks > 1 else ''}"


def told_size() -> str:
    """Return the sizes of the larger case as text."""
    return f"{LARGER.stages} stages, {LARGER.hydros} hydros, {ITERATIONS} iterations"


def put_first(path: Path, more: dict[str, Any]) -> None:
    """Add entries to a result, after its optimum and the difference to the optimum."""
    result = json.loads(path.read_text())
    first = {name: result[name] for name in FIRST if name in result}
    write_text(path, json.dumps({**first, **more, **result}, indent=1) + "\n")


def main(argv: list[str]) -> int:
    """Train both cases."""
    parser = argparse.ArgumentParser(prog="demo.py", description="What make demo shows.")
    parser.add_argument("folder", type=Path, help="where files are written")
    parser.add_argument("--case", type=Path, default=KNOWN, help="the case with a known optimum")
    options = parser.parse_args(argv)
    options.folder.mkdir(exist_ok=True)
    result, plot = options.folder / "result.json", options.folder / "convergence.png"
    print("training a case with a known optimum on 4 ranks", flush=True)
    train(4, options.case, result, "--plot", plot)
    cores = min(max(len(os.sched_getaffinity(0)), 2), MOST)
    put_first(result, compare(options.folder, cores))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
