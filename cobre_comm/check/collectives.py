"""The collectives, each against plain NumPy, as Python and as compiled code call them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from cobre_comm.check.result import TIMEOUT_S, Check, CheckFailed
from cobre_comm.testing.backend_name import BackendName, leaders
from cobre_comm.testing.conformance.bodies import cast, exact, gather, reduce, sync
from cobre_comm.testing.conformance.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    OPS,
    PLAIN,
    STRUCTURED,
)
from cobre_comm.testing.ranks.pool import RankPool

MANY_CHUNKS = {
    "COBRE_SHM_BUFFER_BYTES": "4096",
    "COBRE_MPI_BUFFER_BYTES": "4096",
    "COBRE_TCP_STAR_BYTES": "0",
}
"""With these, some KiB are more than one chunk of every transport."""
LENGTHS = [1, 2, 3, 12, 13, 17, 1000, 2049]
CHUNKED_LENGTHS = [159, 160, 161, 2049, 6001]
DTYPES = [(dtype, op) for dtype in [*INTEGERS, *FLOATS] for op in OPS]
DTYPES += [(dtype, OPS[0]) for dtype in COMPLEX]

Tries = list[tuple[str, Callable[[RankPool], object]]]
"""Names of checks, and what they do."""


def run(pool: RankPool, body: Callable[..., Any], *args: Any, **keywords: Any) -> list[Any]:
    """Run a body on all ranks within the time of a check."""
    return pool.run(body, *args, timeout_s=TIMEOUT_S, **keywords)


def checks(caller: str, *, quick: bool) -> Iterator[Check]:
    """Yield what is checked of the collectives, for one kind of caller."""
    for name, does in [*_essentials(caller), *([] if quick else _more(caller))]:
        yield Check(caller, name, does)


def tried(body: Callable[..., Any], *args: Any, **keywords: Any) -> Callable[[RankPool], object]:
    """Return what runs a body on the ranks of a pool."""
    return lambda pool: run(pool, body, *args, **keywords)


def _chunked(body: Callable[..., Any], *args: Any) -> Callable[[RankPool], object]:
    return tried(body, *args, env=MANY_CHUNKS)


def _essentials(caller: str) -> Tries:
    return [
        ("start, rank and size", partial(_identity, caller)),
        ("barrier: three in a row", tried(sync.three_barriers, caller)),
        ("barrier: what was done before is there after", partial(_barrier_orders, caller)),
        ("barrier: a late rank delays all", partial(_late_rank, caller)),
        ("allgatherv: every layout", tried(gather.gather_every_layout, caller)),
        ("allgatherv: many chunks", _chunked(gather.gather_equal, caller, "f8", 2000)),
        ("allgatherv: in place", _chunked(gather.gather_in_place, caller, 5000)),
        ("allreduce: op left out", tried(reduce.reduce_small_sum, caller)),
        *((f"allreduce: {op.name} of float64",
           tried(reduce.reduce_lengths, caller, "f8", op, LENGTHS)) for op in OPS),
        ("allreduce: many chunks",
         _chunked(reduce.reduce_lengths, caller, "f8", OPS[0], CHUNKED_LENGTHS)),
        *((f"allreduce: {op.name} of zeros and NaNs", tried(reduce.reduce_signed_zeros, caller, op))
          for op in OPS[1:]),
        ("broadcast: from every rank", tried(cast.cast_from_every_rank, caller, "f8", 1000)),
        ("broadcast: many chunks", _chunked(cast.cast_lengths, caller, "f8", [159, 161, 3001])),
        ("sequence: four in a row", tried(sync.four_in_a_row, caller)),
        ("sequence: 150 at random", _chunked(sync.random_operations, caller, 20261, 150, 400)),
        ("exact_sum: every kind of values", tried(exact.sum_kinds, caller, 200, [1, 2, 3])),
    ]  # fmt: skip


def _more(caller: str) -> Tries:
    tables = {"python": "list", "njit": "typed list"}[caller]
    both: Tries = [
        ("allgatherv: 100 000 each", tried(gather.gather_equal, caller, "f8", 100_000)),
        ("allgatherv: two and no dimensions", tried(gather.gather_shapes, caller)),
        ("allgatherv: read-only send", tried(gather.gather_read_only_send, caller)),
        (f"allgatherv: tables as {tables}",
         tried(gather.gather_layout, caller, "gaps", "f8", tables)),
        ("allgatherv: structured elements",
         _chunked(gather.gather_layout, caller, "uneven", STRUCTURED)),
        ("allgatherv: odd addresses", _chunked(gather.gather_odd_addresses, caller, 1500)),
        ("allreduce: every dtype and operation", partial(_every_dtype, caller)),
        *((f"allreduce: {op.name} of special numbers",
           tried(reduce.reduce_specials, caller, ["f4", "f8"], op)) for op in OPS),
        ("allreduce: odd addresses",
         tried(reduce.reduce_odd_addresses, caller, "f8", OPS[0], 2051)),
        ("allreduce: again with other data", tried(reduce.reduce_again, caller, OPS[0], 12)),
        ("allreduce: 100 003 elements", tried(reduce.reduce, caller, "f8", OPS[0], 100_003)),
        ("allreduce: two and no dimensions", tried(reduce.reduce_shapes, caller, OPS[0])),
        ("broadcast: read-only on the root", tried(cast.cast_read_only_on_root, caller)),
        ("broadcast: odd addresses", _chunked(cast.cast_odd_addresses, caller, 1500)),
        ("broadcast: root left out", tried(cast.cast_default_root, caller)),
        ("exact_sum: any shape", tried(exact.sum_shapes, caller)),
    ]  # fmt: skip
    return both + (_only_python() if caller == "python" else _mixed())


def _only_python() -> Tries:
    return [
        ("allgatherv: every dtype", _every_plain_dtype),
        ("allgatherv: elements larger than a chunk",
         _chunked(gather.gather_layout, "python", "uneven", "V5000")),
    ]  # fmt: skip


def _mixed() -> Tries:
    """Ranks that call from Python meet ranks that call from compiled code."""
    return [
        ("allgatherv: Python meets njit", tried(gather.gather_layout, "mixed", "uneven")),
        ("allreduce: Python meets njit",
         tried(reduce.reduce_lengths, "mixed", "f8", OPS[0], [3, 40, 5000])),
        ("broadcast: Python meets njit", tried(cast.cast_lengths, "mixed", "f8", [5, 300])),
        ("exact_sum: Python meets njit", tried(exact.sum_kinds, "mixed", 50, [1, 2])),
        ("sequence: each rank in its own way",
         _chunked(sync.random_operations, "each its own", 777, 150, 400)),
    ]  # fmt: skip


def _identity(caller: str, pool: RankPool) -> None:
    kind = BackendName.parse(pool.backend).kind
    right = [
        (rank, pool.size, leads, kind)
        for rank, leads in enumerate(leaders(pool.backend, pool.size))
    ]
    seen = [tuple(each) for each in run(pool, sync.identity, caller)]
    if seen != right:
        raise CheckFailed(f"(rank, size, leader, backend) is {seen}, should be {right}")


def _barrier_orders(caller: str, pool: RankPool) -> None:
    with tempfile.TemporaryDirectory(prefix="cobre-check-") as folder:
        run(pool, sync.barrier_orders_files, caller, folder)


def _late_rank(caller: str, pool: RankPool) -> None:
    times = run(pool, sync.late_rank_delays_all, caller, pool.size - 1, 0.1)
    last = max(entered for entered, _ in times)
    early = [rank for rank, (_, left) in enumerate(times) if left < last]
    if early:
        raise CheckFailed(f"ranks {early} left a barrier before rank {pool.size - 1} had entered")


def _every_dtype(caller: str, pool: RankPool) -> None:
    for dtype, op in DTYPES:
        run(pool, reduce.reduce_lengths, caller, dtype, op, [1, 13, 2500])


def _every_plain_dtype(pool: RankPool) -> None:
    for dtype in PLAIN:
        run(pool, gather.gather_layout, "python", "uneven", dtype)
