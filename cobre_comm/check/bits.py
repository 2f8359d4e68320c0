"""Same bits: what ranks compute, digested, against plain NumPy and rational arithmetic.

What is right does not depend on the backend, the caller or the chunks, so all that are right have
the same bits; of ``exact_sum`` it does not depend on the number of ranks either.
"""

# The bodies that the suite ships are not annotated.
# mypy: allow-untyped-calls

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from cobre_comm.check.collectives import DTYPES, MANY_CHUNKS, run
from cobre_comm.check.result import Check, CheckFailed
from cobre_comm.testing.conformance import reference
from cobre_comm.testing.conformance.bodies import exact, gather
from cobre_comm.testing.conformance.bodies.bits import one_nan
from cobre_comm.testing.conformance.calls import calls
from cobre_comm.testing.ranks.pool import RankPool

LENGTHS = (13, 5001)  # with the flag of a message, and in several chunks
SEED = 31
SPLITS = (1, 2, 3)
VALUES = 400
FEW_DTYPES = ("f8", "i8")  # of which compiled code exists anyway

Digests = dict[str, str]


def checks(*, callers: tuple[str, ...], quick: bool) -> Iterator[Check]:
    """Yield what is checked of bits."""
    for caller in callers:
        for what in RIGHT:
            for chunks in ("", ", many chunks"):
                does = partial(_compare, caller, what, bool(chunks), quick)
                yield Check("bits", f"{what} ({caller}{chunks})", does)


def _compare(caller: str, what: str, many_chunks: bool, quick: bool, pool: RankPool) -> None:
    dtypes = FEW_DTYPES if quick else tuple(dict.fromkeys(dtype for dtype, _ in DTYPES))
    right = RIGHT[what](pool.size, dtypes)
    env = MANY_CHUNKS if many_chunks else {}
    for rank, seen in enumerate(run(pool, digests, caller, what, dtypes, env=env)):
        if different := [name for name in right if seen.get(name) != right[name]]:
            raise CheckFailed(
                f"rank {rank} has other bits than plain NumPy in {len(different)} of {len(right)} "
                f"results: {'; '.join(different[:4])}"
            )


def digests(comm: Any, caller: str, what: str, dtypes: Sequence[str]) -> Digests:
    """Return what this rank computes; runs on every rank."""
    if what == "allreduce":
        return {name: _reduced(comm, caller, *case) for name, case in _reductions(dtypes)}
    if what == "allgatherv":
        tables = gather.layouts(comm.size).items()
        return {name: _gathered(comm, caller, *layout) for name, layout in tables}
    return {
        f"{kind}, split in way {seed}": exact.sum_split(comm, caller, kind, VALUES, seed)
        for kind in exact.KINDS
        for seed in SPLITS
    }


def _reductions(dtypes: Sequence[str]) -> Iterator[tuple[str, tuple[str, Any, int]]]:
    for dtype, op in DTYPES:
        for length in LENGTHS if dtype in dtypes else ():
            yield f"{op.name} of {length} {np.dtype(dtype)}", (dtype, op, length)


def _reduced(comm: Any, caller: str, dtype: str, op: Any, length: int) -> str:
    send = reference.numbers(dtype, comm.rank, length, SEED)
    recv = np.empty_like(send)
    calls(caller).allreduce(comm, send, recv, op)
    return _digest(one_nan(recv))


def _gathered(comm: Any, caller: str, counts: Any, displs: Any, length: int) -> str:
    recv = reference.sentinels("f8", length)
    send = reference.block("f8", comm.rank, counts[comm.rank], SEED)
    calls(caller).allgatherv(comm, send, recv, np.array(counts), np.array(displs))
    return _digest(recv.tobytes())


def _digest(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()


def _right_allreduce(size: int, dtypes: Sequence[str]) -> Digests:
    return {
        name: _digest(one_nan(reference.fold(
            op, [reference.numbers(dtype, rank, length, SEED) for rank in range(size)]
        )))
        for name, (dtype, op, length) in _reductions(dtypes)
    }  # fmt: skip


def _right_allgatherv(size: int, dtypes: Sequence[str]) -> Digests:
    right = {}
    for name, (counts, displs, length) in gather.layouts(size).items():
        sends = [reference.block("f8", rank, counts[rank], SEED) for rank in range(size)]
        recv = reference.allgatherv(reference.sentinels("f8", length), sends, displs)
        right[name] = _digest(recv.tobytes())
    return right


def _right_exact_sum(size: int, dtypes: Sequence[str]) -> Digests:
    """Whatever the number of ranks."""
    with np.errstate(invalid="ignore"):  # of opposite infinities
        return {
            f"{kind}, split in way {seed}": exact.expected(
                exact.everything(kind, seed, VALUES)
            ).hex()
            for kind in exact.KINDS
            for seed in SPLITS
        }


RIGHT = {
    "allreduce": _right_allreduce,
    "allgatherv": _right_allgatherv,
    "exact_sum": _right_exact_sum,
}
"""What is right, by name of the collective, of a number of ranks and some dtypes."""
