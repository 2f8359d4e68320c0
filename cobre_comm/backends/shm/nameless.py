"""Shared memory without a name, for ranks that can already talk: theory of operation.

A file in /dev/shm counts against the size of /dev/shm, which a container limits; a memfd does not
count. A file without a name cannot be taken by somebody else, mistaken for another job's file, or
left behind. The segment of a rank that is alone on its node is a memfd, and needs no /dev/shm. On
other nodes the leader makes an empty file, and hands the file to the other ranks. Then all of them
map the file, and each rank reserves the pages that it owns. All ranks take the same steps, because
each step ends with an agreement. If a group has several nodes, the leader of each node makes a file
for its own ranks, and the ranks of all nodes agree together.

========= =================================== ====================================================
step      leader                              other ranks
========= =================================== ====================================================
HAND OVER makes a file without a name, and    open the file that is offered (``offer.py``)
          offers it
AGREE     a rank that could not: BY NAME; else RESERVE
BY NAME   draws a random name and tells it,   receive the name before it exists
          then creates the file
AGREE     a rank that could not: ``AllocationFailed`` on all ranks
OPEN      --                                  open the name
AGREE     a rank that could not: ``AllocationFailed`` on all ranks. Every rank removes the name
RESERVE   finds room for all pages, maps the  --
          file, takes its own pages
AGREE     a rank that could not: ``AllocationFailed`` on all ranks
MAP       --                                  map the file, take their own pages
AGREE     a rank that could not: ``AllocationFailed`` on all ranks
========= =================================== ====================================================

If a rank dies, the agreement fails on the other ranks, and they close what they have opened. The
random name that BY NAME draws exists only while ranks open the file, before a page is taken. Each
rank knows the name and removes it, even if an agreement fails. So an empty file is left only if all
ranks are killed while the name exists.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from cobre_comm.backends.agreement import (
    Group,
    agree_on_memory,
    attempt,
    first_problem,
)
from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.offer import (
    NOTHING,
    WORD_BYTES,
    Offer,
    make_nameless,
    make_private,
    offer_in,
)
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.errors import AllocationFailed
from cobre_comm.system.descriptor import Descriptor


def share_segment(
    group: Group,
    nbytes: int,
    own: range,
    prepare: Callable[[Segment], None] = lambda segment: None,
    *,
    leader: int,
    interleave: bool = False,
    is_alone: bool = False,
) -> Segment:
    """Return a new segment that all ranks of one leader have mapped; collective.

    The ranks of the group agree together: if one rank fails, all raise ``AllocationFailed``, which
    names that rank and the reason. ``leader`` is the rank that makes the segment for this rank. All
    ranks of one leader give the same ``nbytes``. Each rank reserves the pages of the bytes ``own``;
    together the ranks of a leader reserve all pages.

    ``prepare`` is called with the mapped segment, on the leader first, then on the others.
    ``interleave`` spreads the pages over NUMA nodes. If a rank ``is_alone``, it shares its segment
    with no other rank, and needs no /dev/shm.
    """
    file = _share_file(group, leader, nbytes, is_alone)
    leads = group.rank == leader

    def make() -> Segment:
        if leads:
            segment = segments.extend(file, nbytes, own, interleave=interleave)
        else:
            segment = Segment(file, nbytes)
            segment.reserve(own)
        prepare(segment)
        return segment

    try:
        segment, problem = attempt(make) if leads else (None, "")
        agree_on_memory(group, nbytes, problem)
        if not leads:
            segment, problem = attempt(make)
        agree_on_memory(group, nbytes, problem)
    except BaseException:
        file.close()
        raise
    assert segment is not None
    return segment


def _share_file(group: Group, leader: int, nbytes: int, is_alone: bool) -> Descriptor:
    """Return the leader's new, empty file without a name; collective."""
    problem = ""
    without_name = functools.partial(hand_over, make=make_private if is_alone else make_nameless)
    for way in (without_name, _share_by_name):
        file, problem = way(group, leader)
        if file is not None:
            if not problem:
                return file
            file.close()
    raise AllocationFailed(nbytes, problem)


def hand_over(
    group: Group, leader: int, make: Callable[[], Descriptor]
) -> tuple[Descriptor | None, str]:
    """Do HAND OVER; return the file, and the problem of the first rank that has one, or ""."""
    file, problem, own = None, "", NOTHING
    if group.rank == leader:
        file, problem = attempt(make)
        if file is not None:
            own = Offer(pid=os.getpid()).of(file)
    offer = offer_in(group.gather_rows(own.row())[leader])
    if group.rank != leader:
        file, problem = attempt(offer.opened)
    return file, first_problem(group, problem)


def _share_by_name(group: Group, leader: int) -> tuple[Descriptor | None, str]:
    """Do BY NAME and OPEN; return the file, and the first problem of any rank, or ""."""
    import secrets  # here, because most ranks never need this module, and start faster without it

    drawn = Offer(word=secrets.token_bytes(WORD_BYTES))
    offer = offer_in(group.gather_rows(drawn.row())[leader])
    file, problem = None, ""
    try:
        if group.rank == leader:
            file, problem = attempt(lambda: segments.create_named(offer.name))
        found = first_problem(group, problem)
        if not found:
            if group.rank != leader:
                file, problem = attempt(lambda: segments.open_named(offer.name))
            found = first_problem(group, problem)
        return file, found
    finally:
        offer.remove_name()
