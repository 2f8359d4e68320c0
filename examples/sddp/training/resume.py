"""Write the state of a training between two iterations to a checkpoint, and read it back."""

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from checkpoint.file import read_header, verify, write_checkpoint
from checkpoint.header import CheckpointError, Header, digest_of

from training.cuts import SharedCuts, SharedPoints
from training.loop.memory import TRACE
from training.plan import Plan
from training.share import Setting, UnwrittenFile, UsageError, tell

NOTHING, FOUND, WRONG = 0, 1, 2
"""The answers of rank 0: there is no checkpoint, it can be used, or it cannot be used."""


class Standing(NamedTuple):
    """What the next iterations need of the earlier iterations, beside the cuts."""

    trace: np.ndarray  # (iterations,) records of TRACE, in scaled units
    reference: np.ndarray  # (T, H) incoming volumes of the reference bases


def find_checkpoint(setting: Setting, path: Path, plan: Plan | None = None) -> Header | None:
    """Return the header of the checkpoint `path`, verified by rank 0; None if there is no file.

    Raises
    ------
    UsageError
        On every rank the same, if the file is no whole checkpoint, or one of another case. With a
        `plan`, also if the checkpoint has another seed, number of forward passes or selection of
        cuts than the plan.
    """
    told = _judge(setting, path, plan) if setting.comm.rank == 0 else (NOTHING, b"")
    kind, data = tell(setting.comm, *told)
    if kind == WRONG:
        raise UsageError(data.decode())
    return Header(**json.loads(data)) if kind == FOUND else None


def _judge(setting: Setting, path: Path, plan: Plan | None) -> tuple[int, bytes]:
    """Return the answer of rank 0: the header, or a sentence on what is wrong."""
    try:
        header = verify(path, len(TRACE.names or ()))
    except FileNotFoundError:
        return NOTHING, b""
    except CheckpointError as error:
        return WRONG, str(error).encode()
    case, wrong = setting.case, ""
    if header.case_sha256 != digest_of(case):
        wrong = f"case {header.case} with other data than {case.name} has now"
    elif plan is not None and header.seed != plan.seed:
        wrong = f"--seed {header.seed}, not {plan.seed}"
    elif plan is not None and header.trajectories != plan.trajectories:
        wrong = f"--forward-passes {header.trajectories}, not {plan.trajectories}"
    elif plan is not None and (then := selection_of(header)) != (now := selection_of(plan)):
        wrong = f"a training {then}, not {now}"
    if wrong:
        text = f"the checkpoint {path} is of {wrong}; go on as it was made, or name another file"
        return WRONG, text.encode()
    return FOUND, json.dumps(asdict(header)).encode()


def selection_of(made: Header | Plan) -> str:
    """Return by which option of `train.py` cuts are selected."""
    if made.ring == 0:
        return "with --all-cuts (or --survive)"
    return "without --select-cuts or --all-cuts" if made.spared else "with --select-cuts"


def load_checkpoint(
    setting: Setting,
    path: Path,
    header: Header,
    cuts: SharedCuts,
    points: SharedPoints | None = None,
) -> Standing:
    """Fill `cuts` and `points` from the checkpoint `path`; return the standing of its training."""
    comm, reference = setting.comm, np.zeros((len(header.counts), header.hydros))
    trace = np.zeros(header.iterations, TRACE)
    with path.open("rb") if comm.rank == 0 else contextlib.nullcontext() as file:
        if file is not None:
            read_header(file)
            for array in (trace, reference):
                file.readinto(array)
        cuts.load(header.counts, file)
        if points is not None and header.ring:
            points.load(header.seen, cuts.pool, file)
    for array in (trace, reference):
        if array.size:
            comm.broadcast(array, 0)
    return Standing(trace, reference)


def save_checkpoint(
    setting: Setting,
    path: Path,
    plan: Plan,
    cuts: SharedCuts,
    points: SharedPoints,
    standing: Standing,
) -> None:
    """Write a checkpoint on rank 0; the other ranks wait, and learn whether rank 0 could write.

    Raises
    ------
    UnwrittenFile
        On every rank the same, if the file cannot be written; the old file is still there.
    """
    text = b""
    if setting.comm.rank == 0:
        case, seen = setting.case, points.points.seen
        header = Header(
            case.name, digest_of(case), plan.seed, plan.trajectories, len(case.hydros),
            len(standing.trace), cuts.pool.count.tolist(), plan.ring, plan.spared, seen.tolist(),
        )  # fmt: skip
        rows = cuts.memory.filled(header.counts) + points.memory.filled(header.points())
        try:
            write_checkpoint(path, header, [standing.trace, standing.reference, *rows])
        except OSError as error:
            text = (
                f"cannot write the checkpoint {path}: {error.strerror or error}; make room".encode()
            )
    kind, text = tell(setting.comm, WRONG if text else FOUND, text)
    if kind == WRONG:
        raise UnwrittenFile(text.decode())
