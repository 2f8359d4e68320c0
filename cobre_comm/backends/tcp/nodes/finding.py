"""How ranks find out, by trying, which of them share memory: these are a node.

Every rank offers a file and tries to open those of lower ranks. It joins the lowest rank whose file
it can open. Two exchanges do it: of the offers, then of what each rank has found.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from cobre_comm.backends.nodes.node_order import NodeOrder, node_order_of
from cobre_comm.backends.tcp.nodes.offer import (
    ALONE,
    NOTHING,
    Offer,
    can_open,
    make_offer,
    remove_name,
    unpack_offer,
)
from cobre_comm.common.agreement import Group, attempt
from cobre_comm.common.descriptor import Descriptor
from cobre_comm.config import TcpConfig

_logger = logging.getLogger("cobre_comm")


def find_nodes(group: Group, config: TcpConfig) -> NodeOrder:
    """Return which ranks are on which node; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    config : TcpConfig
        Of this rank: whether it shares memory at all, and whom it must be kept apart from.
    """
    rank, offers = group.rank, []
    file, own = _offer(config)
    try:
        given = group.gather_rows(np.frombuffer(own.pack(), dtype=np.uint8))
        offers = [unpack_offer(row.tobytes()) for row in given]
        lower = (peer for peer in range(rank) if own.domain == offers[peer].domain != ALONE)
        found = next((peer for peer in lower if can_open(offers[peer])), rank)
        leaders = group.gather_rows(np.array([found], dtype=np.uint32))[:, 0].tolist()
    finally:
        for offer in [own, *offers]:
            remove_name(offer)
        if file is not None:
            file.close()
    return node_order_of(confirmed(leaders), rank)


def confirmed(found: Sequence[int]) -> list[int]:
    """Return the leader of every rank, given whom each has found.

    A rank whose leader has joined another one stays alone: not all of these share memory.
    """
    return [
        leader if leader <= rank and found[leader] == leader else rank
        for rank, leader in enumerate(found)
    ]


def _offer(config: TcpConfig) -> tuple[Descriptor | None, Offer]:
    if not config.share:
        return None, NOTHING
    pretended = config.pretend_nodes
    domain = pretended[config.rank % len(pretended)] if pretended else 0
    made, problem = attempt(lambda: make_offer(domain))
    if made is None:
        _logger.warning("tcp rank %d shares no memory: %s", config.rank, problem)
        return None, NOTHING
    return made
