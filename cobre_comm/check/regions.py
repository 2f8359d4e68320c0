"""Shared regions and ``split_local``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cobre_comm.check.collectives import Tries, run, tried
from cobre_comm.check.result import Check, CheckFailed
from cobre_comm.testing.backend_name import leaders, node_of_ranks
from cobre_comm.testing.conformance.bodies import regions
from cobre_comm.testing.conformance.reference import STRUCTURED
from cobre_comm.testing.ranks.pool import RankPool

ORDERS = list(itertools.permutations(["close region", "close comm", "drop"]))


def checks(*, quick: bool) -> Iterator[Check]:
    """Yield what is checked of regions."""
    for name, does in [*_essentials(), *([] if quick else _more())]:
        yield Check("regions", name, does)


def _essentials() -> Tries:
    return [
        ("the leader populates", tried(regions.populate_on_leader, "f8", 1000)),
        ("each populates a block", tried(regions.populate_by_block, 10_000)),
        ("one copy in memory", tried(regions.one_copy_in_memory)),
        ("one leader on a node", _leaders),
        ("split_local", _split),
        ("in compiled code", tried(regions.in_compiled_code)),
    ]


def _more() -> Tries:
    return [
        ("a late leader", tried(regions.late_leader, "njit", 0.1)),
        ("no element", tried(regions.populate_on_leader, "f8", 0)),
        ("200 000 elements", tried(regions.populate_on_leader, "f8", 200_000)),
        ("structured elements", tried(regions.populate_on_leader, STRUCTURED, 1000)),
        ("bounds of blocks", tried(regions.block_bounds)),
        ("views outlive all", _views),
        ("50 leave nothing", tried(regions.many_regions, 50)),
        ("20 communicators leave nothing", tried(regions.many_communicators, 20)),
        ("too large", tried(regions.too_large, "python", 2**58)),
        ("wrong arguments", tried(regions.bad_region_arguments)),
        ("closed communicator", tried(regions.closed_communicator)),
        ("split_local outlives its parent", tried(regions.split_outlives_parent, fresh=True)),
        ("compiled code cannot write", tried(regions.compiled_write_is_refused)),
        ("compiled code keeps references", tried(regions.compiled_references, 100)),
    ]


def _leaders(pool: RankPool) -> None:
    right, seen = leaders(pool.backend, pool.size), run(pool, regions.leader)
    if seen != right:
        raise CheckFailed(f"is_leader is {seen} in rank order, should be {right}")


def _split(pool: RankPool) -> None:
    nodes = node_of_ranks(pool.backend, pool.size)
    for caller in ("python", "njit"):
        run(pool, regions.split, caller, nodes)


def _views(pool: RankPool) -> None:
    for order in ORDERS:
        run(pool, regions.views_outlive_everything, order[: order.index("drop") + 1])
