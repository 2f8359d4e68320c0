"""The result of a training as a JSON file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.run import Training


def unwritable(program: str, paths: Mapping[str, Path | None]) -> list[str]:
    """Return a sentence for each output file, named by its option, that cannot be written."""
    return [
        f"{program}: error: cannot write {option} {path}; name a file in a folder that exists"
        for option, path in paths.items()
        if path is not None and not _is_writable(path)
    ]


def _is_writable(path: Path) -> bool:
    target = path if path.exists() else path.parent
    return target.exists() and not path.is_dir() and os.access(target, os.W_OK)


def both_bases(traces: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers, or lists of them, as hexadecimal texts, and under "decimal" as they are.

    Two results are compared by the hexadecimal texts. The decimals read back as the same bits too.
    """
    hexadecimal = {
        name: value.hex() if isinstance(value, float) else [x.hex() for x in value]
        for name, value in traces.items()
    }
    return {**hexadecimal, "decimal": dict(traces)}


def write_result(training: Training, seed: int, path: Path) -> None:
    """Write bounds, digest and times to `path`."""
    bounds = both_bases(
        {
            "lower_bound": training.lower_bound,
            "upper_bound_mean": training.upper_bound_mean,
            "upper_bound_half_width": training.upper_bound_half_width,
        }
    )
    result = {
        "case": training.case.name,
        "backend": training.backend,
        "ranks": training.ranks,
        "iterations": len(training.trace),
        "resumed_after": training.resumed_after,
        "seed": seed,
        "forward_passes": training.plan.trajectories,
        "select_cuts": training.plan.ring > 0,
        "stopped": training.stopped,
        **bounds,
        "cuts_sha256": training.cuts_sha256,
        "wall_s": training.wall_s,
        "comm_s": training.comm_s,
        "iteration_s": (training.trace["wall_ns"] * 1e-9).tolist(),
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
