"""Share the case with all ranks: its file is read by rank 0, its openings are in shared memory."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from case.data import Case
from case.fields import CaseError
from case.read import parse_case
from cobre.folder import NotFromCobre
from cobre.read import read_folder
from stage.columns import rows_of_case
from stage.problem import Problem, build_problem, opening_row
from stage.units import Units, choose_units, refuse_sizes

CASE, CASE_ERROR, USAGE = 0, 1, 2
"""The messages of rank 0: a case, the error in it, or the reason why it cannot be read."""


class UsageError(Exception):
    """The program cannot do what the command line asks; it ends with exit code 2."""


class UnwrittenFile(Exception):
    """A file that seemed writable could not be written; the program ends with exit code 1."""


def load_case(comm: Any, path: Path, problems: list[str] | None = None) -> Case:
    """Return the case in `path`, read by rank 0 and broadcast.

    Parameters
    ----------
    comm : Communicator
        All ranks call this.
    path : Path
        A file, or a folder of Cobre's; only rank 0 opens it.
    problems : list of str, optional
        Sentences of rank 0 on mistakes in the command line.

    Raises
    ------
    CaseError
        On every rank the same, if the file is not a valid case.
    UsageError
        On every rank the same, if there are `problems` or the case cannot be read.
    """
    told = _read(path, problems or []) if comm.rank == 0 else (CASE, b"")
    kind, data = tell(comm, *told)
    if kind == CASE_ERROR:
        raise CaseError(*json.loads(data))
    if kind == USAGE:
        raise UsageError(data.decode())
    return parse_case(data, path.name)


def tell(comm: Any, kind: int, data: bytes) -> tuple[int, bytes]:
    """Return on all ranks the kind and the bytes that rank 0 gives; collective."""
    header = np.array([kind, len(data)], np.int64)
    comm.broadcast(header, 0)
    body = np.zeros(int(header[1]), np.uint8)
    if comm.rank == 0:
        body[:] = np.frombuffer(data, np.uint8)
    if body.size:
        comm.broadcast(body, 0)
    return int(header[0]), body.tobytes()


def _read(path: Path, problems: list[str]) -> tuple[int, bytes]:
    """Return what rank 0 tells all ranks: a kind and bytes."""
    if problems:
        return USAGE, "\n".join(problems).encode()
    try:
        data = _convert(path) if path.is_dir() else path.read_bytes()
        parse_case(data, path.name)
    except OSError as error:
        return USAGE, f"cannot read {path}: {error.strerror}".encode()
    except NotFromCobre as error:
        return USAGE, str(error).encode()
    except CaseError as error:
        return CASE_ERROR, json.dumps(error.args).encode()
    return CASE, data


def _convert(folder: Path) -> bytes:
    """Return a folder of Cobre's as the file of a case."""
    case = read_folder(folder)
    if "note" in case:
        print(case["note"], file=sys.stderr, flush=True)
    return json.dumps(case).encode()


class Node(NamedTuple):
    """The ranks that share memory with this rank: its number among them, and how many they are."""

    rank: int
    size: int


class Setting(NamedTuple):
    """A case on one rank: communicator, node, units and the arrays of its problem."""

    comm: Any
    node: Node
    case: Case
    units: Units
    problem: Problem


@contextlib.contextmanager
def shared_setting(comm: Any, case: Case) -> Iterator[Setting]:
    """Give the problem of `case` with its openings in a shared region, while the block lasts.

    The ranks of a node hold one copy and fill it together, each its block of openings.

    Raises
    ------
    UsageError
        On every rank the same, if sizes or discounts are so far apart that bounds would be wrong.
    """
    if refused := refuse_sizes(case):
        raise UsageError(refused)
    units = choose_units(case)
    total, width = sum(len(p) for p in case.probabilities), rows_of_case(case).limits
    with comm.split_local() as local:
        node = Node(local.rank, local.size)
        begin, end = local.share(total)
    with comm.create_shared_region((total, width)) as region:
        for row, k in zip(region.part(begin, end), range(begin, end), strict=True):
            row[:] = opening_row(case, units, k)
        region.fence()
        yield Setting(comm, node, case, units, build_problem(case, units, region.as_slice()))
