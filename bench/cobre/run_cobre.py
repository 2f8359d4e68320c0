"""Train a folder of Cobre's, with the Python that has cobre-python; write what it took as JSON.

    .venv-cobre/bin/python bench/cobre/run_cobre.py FOLDER THREADS OUT.json

This script imports nothing of this repository, because that Python lacks our packages.
"""

import json
import sys
import time
from pathlib import Path

import cobre
import pyarrow.parquet as pq


def main(folder: Path, threads: int, out: Path) -> None:
    bounds, seconds = [], []
    start = time.perf_counter()

    def note(told: dict) -> None:
        bounds.append(told["lower_bound"])
        seconds.append(time.perf_counter() - start)

    cpu_s = time.process_time()
    done = cobre.run.run(
        str(folder), output_dir=str(folder / "output"), threads=threads, on_iteration=note
    )
    cpu_s = time.process_time() - cpu_s
    solver = pq.read_table(folder / "output/training/solver/iterations.parquet").to_pydict()
    told = {
        "version": cobre.__version__,
        "lower_bound": done["lower_bound"],
        "training_s": done["total_time_ms"] / 1000,
        "cpu_s": cpu_s,
        "solves": sum(solver["lp_solves"]),
        "solving_s": sum(solver["solve_time_ms"]) / 1000,
        "bounds": bounds,
        "seconds": seconds,
    }
    out.write_text(json.dumps(told) + "\n")


main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
