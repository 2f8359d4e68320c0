"""The SDDP example as a witness: the same bits on any backend and number of ranks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cobre_comm
from cobre_comm.processes.interpreter import calling
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.surroundings import inherited_environment, scaled_limit

COMPARED = (
    "lower_bound",
    "upper_bound_mean",
    "upper_bound_half_width",
    "cuts_sha256",
    "iterations",
    "stopped",
)
"""What must be equal to the bit; bounds are traces of hexadecimal floats, one per iteration."""

GRACE_S = 10.0  # the time that a launcher gets to end its ranks


class TrainingFailed(RuntimeError):
    """A training has failed; the message has the end of its output."""


def example_folder() -> Path:
    """Return the folder of the example: beside this package in a wheel, else in the repository."""
    package = Path(cobre_comm.__file__).parent
    installed = package / "examples" / "sddp"
    return installed if installed.is_dir() else package.parent / "examples" / "sddp"


def train(
    backend: str,
    ranks: int,
    case: str | Path,
    options: Sequence[str] = (),
    timeout_s: float | None = 300.0,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Train a case with ``cobre-comm run``; return the result that ``train.py --out`` writes.

    ``case`` is a file, or the name of a case of the example. The timeout includes compilation.
    """
    name, folder = BackendName.parse(backend), example_folder()
    path = case if isinstance(case, Path) else folder / "cases" / f"{case}.json"
    with tempfile.TemporaryDirectory(prefix="cobre-check-") as scratch:
        out = Path(scratch) / "result.json"
        command = [sys.executable, *calling("cobre_comm.cli"), "run", "-n", str(ranks)]
        command += ["--backend", name.kind, str(folder / "train.py"), str(path)]
        command += ["--quiet", "--out", str(out), *options]
        environment = {**inherited_environment(), **name.environment(ranks), **(env or {})}
        limit_s = None if timeout_s is None else scaled_limit(timeout_s)
        text = _run(command, environment, limit_s)
        if not out.exists():
            raise TrainingFailed(f"{backend}, {ranks} ranks: {text[-2000:]}")
        result: dict[str, Any] = json.loads(out.read_text())
    if (result["backend"], result["ranks"]) != (name.kind, ranks):
        raise TrainingFailed(f"{backend}, {ranks} ranks: ran as {result['backend']}")
    return result


def _run(command: Sequence[str], environment: Mapping[str, str], timeout_s: float | None) -> str:
    """Run a command to its end; return its exit code and output, or say that it was too slow."""
    with subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return f"did not end within {timeout_s:g} s: {_end(process)}"
        except BaseException:
            _end(process)
            raise
    return f"exit code {process.returncode}: {output}"


def _end(process: subprocess.Popen[str]) -> str:
    """Make a launcher end its ranks; return the end of its output."""
    process.terminate()
    try:
        return process.communicate(timeout=GRACE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()  # its guardian then ends the ranks
        return process.communicate()[0]


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of the values that differ between two results."""
    return [name for name in COMPARED if one[name] != other[name]]
