"""The configurations of communicators that a backend makes for one node, or for a part."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from cobre_comm.backends.nodes.memory import least_buffer_bytes
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.split import Part
from cobre_comm.config import MpiConfig, ShmConfig, TcpConfig

STAGING_BYTES = 4 * 2**20  # of each node, if there are several nodes
STAGING_SHARE_BYTES = 256 * 2**10  # the least for each rank, so that many ranks need few rounds

Config = TypeVar("Config", TcpConfig, MpiConfig)


def with_staging_buffer(config: Config, order: NodeOrder) -> Config:
    """Return a configuration with collective buffers that have room for the staging buffer."""
    share = max(STAGING_BYTES // len(order.here), STAGING_SHARE_BYTES)
    wanted = max(config.buffer_bytes or share, least_buffer_bytes(order))
    return dataclasses.replace(config, buffer_bytes=wanted)


def within_node(config: TcpConfig | MpiConfig, rank: int, size: int) -> ShmConfig:
    """Return the ``ShmConfig`` of a rank among the ranks of its node."""
    return ShmConfig(
        name="/node",  # for messages; the segment has no name
        rank=rank,
        size=size,
        timeout_s=config.timeout_s,
        buffer_bytes=config.buffer_bytes,
        numa_interleave=config.numa_interleave,
        spin_us=config.spin_us,
    )


def nodes_of_part(pretended: tuple[int, ...], part: Part) -> tuple[int, ...]:
    """Return the pretended node of each rank of a part; empty if no nodes are pretended."""
    return tuple(pretended[rank % len(pretended)] for rank in part.ranks) if pretended else ()
