"""Finds the nodes: each rank tries to open the shared memory of other ranks, without any socket.

Every rank offers a file in shared memory (``shm/offer.py``). When the ranks have exchanged their
offers, each rank tries to open the files of lower ranks, and joins the lowest rank that offers a
file which it can open. Then each rank tells all others which rank it has joined.

The file holds a random word, by which a rank recognises it: on another machine the same process
number or inode may lead to another file. If a file has a name, every rank removes the name as soon
as all ranks have tried to open the file.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

import numpy as np

from cobre_comm.backends.agreement import Group, attempt
from cobre_comm.backends.nodes.node_order import NodeOrder, node_order_of
from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.offer import (
    ALONE,
    BY_NAME,
    NOTHING,
    WORD_BYTES,
    Offer,
    make_nameless,
    offer_in,
)
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.log import logger


def make_offer(domain: int) -> tuple[Descriptor, Offer]:
    """Return a new file, and the offer of that file; ``OSError`` if there is no shared memory."""
    own = Offer(domain, os.getpid(), word=secrets.token_bytes(WORD_BYTES))
    try:
        file = make_nameless()
        os.pwrite(file.number, own.word, 0)
    except OSError:
        own = own._replace(pid=BY_NAME)
        file = segments.create_named(own.name)
    return file, own.of(file)


def can_open(offer: Offer) -> bool:
    """Tell whether this process can open the file of a peer."""
    try:
        file = offer.opened()
        return offer.pid == BY_NAME or os.pread(file.number, WORD_BYTES, 0) == offer.word
    except OSError:
        return False


def find_nodes(group: Group, share: bool = True, pretended: Sequence[int] = ()) -> NodeOrder:
    """Find the nodes of all ranks; collective.

    ``share`` says whether this rank shares memory at all. ``pretended`` is for tests: a list of
    pretended nodes, which ranks take in turn; ranks of different pretended nodes do not share
    memory.
    """
    rank, given = group.rank, []
    file, own = _offer(rank, share, pretended)
    try:
        given = list(map(offer_in, group.gather_rows(own.row())))
        lower = (peer for peer in range(rank) if own.domain == given[peer].domain != ALONE)
        found = next((peer for peer in lower if can_open(given[peer])), rank)
        leaders = group.gather_rows(np.array([found], dtype=np.uint32))[:, 0].tolist()
    finally:
        for offer in [own, *given]:
            offer.remove_name()
        if file is not None:
            file.close()
    return node_order_of(confirmed(leaders), rank)


def confirmed(found: Sequence[int]) -> list[int]:
    """Return the leader of every rank; ``found`` has, for each rank, the rank that it has joined.

    If a rank has joined a second rank, and the second rank has joined a third, the three do not all
    share memory. Then the first of them stays alone.
    """
    return [
        leader if leader <= rank and found[leader] == leader else rank
        for rank, leader in enumerate(found)
    ]


def _offer(rank: int, share: bool, pretended: Sequence[int]) -> tuple[Descriptor | None, Offer]:
    if not share:
        return None, NOTHING
    domain = pretended[rank % len(pretended)] if pretended else 0
    made, problem = attempt(lambda: make_offer(domain))
    if made is None:
        logger.warning("rank %d shares no memory: %s", rank, problem)
        return None, NOTHING
    return made
