"""The result of a training as a JSON file."""

import json
import os
from pathlib import Path

from training.run import Training


def unwritable(path: Path | None, option: str) -> list[str]:
    """Return what is wrong with `path` as an output file: one sentence or none."""
    if path is None:
        return []
    target = path if path.exists() else path.parent
    if path.is_dir() or not target.exists() or not os.access(target, os.W_OK):
        return [f"train.py: error: cannot write {option} {path}"]
    return []


def write_result(training: Training, seed: int, path: Path) -> None:
    """Write bounds, digest and times to `path`; floats that are compared are in hexadecimal."""
    result = {
        "case": training.case.name,
        "backend": training.backend,
        "ranks": training.ranks,
        "iterations": len(training.trace),
        "seed": seed,
        "forward_passes": training.plan.trajectories,
        "stopped": training.stopped,
        "lower_bound": [x.hex() for x in training.lower_bound],
        "upper_bound_mean": [x.hex() for x in training.upper_bound_mean],
        "upper_bound_half_width": [x.hex() for x in training.upper_bound_half_width],
        "cuts_sha256": training.cuts_sha256,
        "wall_s": training.wall_s,
        "comm_s": training.comm_s,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
