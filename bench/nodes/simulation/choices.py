"""What the engine chooses, asked of the engine: sizes, and which way a payload takes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
from cobre_kernels.nodes import allgatherv, allreduce
from cobre_kernels.nodes.lanes import lanes_for
from cobre_kernels.nodes.records import STRIPE_LINE_BYTES
from cobre_kernels.nodes.round import LEADER_HEADER_BYTES
from cobre_kernels.tcp import chain, links, ring

from bench.nodes.model import Nodes
from cobre_comm.backends.nodes.configs import with_staging_buffer, within_node
from cobre_comm.backends.nodes.memory import half_bytes_of
from cobre_comm.backends.nodes.node_order import node_order_of
from cobre_comm.backends.shm.buffers import choose_buffer_bytes
from cobre_comm.backends.tcp.rendezvous.coordinator import FAR_EAGER_BYTES
from cobre_comm.config import TcpConfig

HEADER_BYTES = LEADER_HEADER_BYTES
EAGER_BYTES = FAR_EAGER_BYTES
SYSCALL_BYTES = ring.SYSCALL_BYTES
STAGING_CHUNKS = links.STAGING_CHUNKS


@cache
def half_bytes(nodes: int, ranks: int, lanes: int) -> int:
    """Return the bytes of half a staging buffer, as the ranks of a node agree on them."""
    order = replace(node_order_of(np.arange(nodes * ranks) // ranks * ranks, 0), lanes=lanes)
    config = with_staging_buffer(TcpConfig(rank=0, size=1), order)  # size is that of order
    return half_bytes_of(order, choose_buffer_bytes(within_node(config, 0, ranks)))


def with_half(at: Nodes) -> Nodes:
    """Return terms with the half of a staging buffer that these nodes have."""
    return replace(at, half=half_bytes(at.nodes, at.ranks, at.lanes))


def lanes_of(at: Nodes, nbytes: float) -> int:
    """Return how many of the lanes a payload takes."""
    return int(lanes_for.py_func(at.lanes, nbytes, at.half))


def gathers_all(at: Nodes, nbytes: int) -> bool:
    """Tell whether contributions of an allreduce go to every node."""
    return nbytes <= allreduce.gathered_bytes.py_func(at.ranks, at.size, EAGER_BYTES, at.half)


def goes_along_chain(at: Nodes, lanes: int) -> bool:
    """Tell whether a large allreduce goes along the chain."""
    return at.ranks > 1 and bool(allreduce.chain_pays.py_func(at.nodes, at.ranks, lanes, at.half))


def goes_straight(at: Nodes, lanes: int, block: int) -> bool:
    """Tell whether blocks go straight to every leader, and not around the ring."""
    return bool(ring.goes_straight.py_func(at.nodes, lanes, block))


def rounds_of_allgatherv(at: Nodes, nbytes: int, givers: int) -> list[int]:
    """Return the bytes of all ranks in each round."""
    chunk = allgatherv.share_of_half.py_func(at.half, givers)
    return cut(-(-nbytes // givers), chunk, givers)


def rounds_of_chain(at: Nodes, nbytes: int) -> list[int]:
    """Return the bytes of a contribution in each round."""
    return cut(nbytes, allreduce.chain_chunk_bytes.py_func(at.ranks, at.half))


def chain_chunk_bytes(nbytes: int) -> int:
    """Return the bytes that a chain passes on at once, in a round of so many."""
    return int(chain.chunk_bytes.py_func(nbytes))


def rounds_of_stripes(at: Nodes, nbytes: int, lanes: int) -> list[int]:
    """Return the bytes of a contribution in each round: chunks that are all as long."""
    nodes = SimpleNamespace(nodes=at.nodes, widest=at.ranks, half_bytes=at.half, lanes_now=lanes)
    largest = allreduce._largest_stripe.py_func(SimpleNamespace(nodes=nodes, size=at.size))
    chunks = -(-nbytes // (at.nodes * lanes * largest))
    lines = at.nodes * lanes * STRIPE_LINE_BYTES
    return cut(nbytes, -(-nbytes // (chunks * lines)) * lines)


def cut(nbytes: int, chunk: int, times: int = 1) -> list[int]:
    return [times * min(chunk, nbytes - begin) for begin in range(0, nbytes, chunk)]
