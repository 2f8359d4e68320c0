"""The result of a training as a JSON file."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from files import write_text
from training.run import Training
from training.stopping import gap_of, is_below_bound


def both_bases(traces: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers, or lists of them, as hexadecimal texts and, under "decimal", as numbers.

    None and NaN are null in both forms. Two results are compared by the hexadecimal texts. The
    decimals too give the same bits when they are read.
    """
    numbers = {name: _each(value, lambda x: x) for name, value in traces.items()}
    hexadecimal = {name: _each(value, float.hex) for name, value in traces.items()}
    return {**hexadecimal, "decimal": numbers}


def _each(value: Any, convert: Callable[[float], Any]) -> Any:
    """Return a number, or each number of a list, converted."""
    if isinstance(value, list):
        return [_each(x, convert) for x in value]
    return None if value is None or math.isnan(value) else convert(value)


def gap_tests(training: Training) -> list[dict[str, Any]]:
    """Return what the samples of fresh paths, which are for judging the gap, have shown."""
    return [
        {
            "iteration": i + 1,
            "paths": int(line["fresh_paths"]),
            "mean": float(line["fresh_mean"]),
            "half_width": float(line["fresh_half_width"]),
            "gap": gap_of(line),
            "below_bound": is_below_bound(line),
        }
        for i, line in enumerate(training.trace)
        if line["fresh_paths"] > 0.0
    ]


def write_result(training: Training, seed: int, path: Path) -> None:
    """Write bounds, digest and times to `path`; first comes what a reader looks for first."""
    bounds = both_bases(
        {
            "lower_bound": training.lower_bound,
            "upper_bound_mean": training.upper_bound_mean,
            "upper_bound_half_width": training.upper_bound_half_width,
        }
    )
    known = "known_bound" if training.case.known_is_bound else "known_optimum"
    result = {
        known: training.case.known,
        "relative_difference": training.relative_difference,
        "case": training.case.name,
        "backend": training.backend,
        "ranks": training.ranks,
        "iterations": len(training.trace),
        "resumed_after": training.resumed_after,
        "seed": seed,
        "forward_passes": training.plan.trajectories,
        "select_cuts": training.plan.ring > 0 and training.plan.spared == 0,
        "all_cuts": training.plan.ring == 0,
        "stopped": training.stopped,
        **bounds,
        "gap_tests": gap_tests(training),
        "cuts_sha256": training.cuts_sha256,
        "wall_s": training.wall_s,
        "waiting_s": training.waiting_s,
        "transferring_s": training.transferring_s,
        "iteration_s": (training.trace["wall_ns"] * 1e-9).tolist(),
    }
    write_text(path, json.dumps(result, indent=1) + "\n")
