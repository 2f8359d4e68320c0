"""Ranks that share memory: offers that a rank can open, and offers that no rank may open."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cobre_comm.backends.nodes import sharing as offers
from cobre_comm.backends.nodes.sharing import confirmed, find_nodes
from cobre_comm.backends.shm import segment as segments

PATIENCE_S = 20.0


class Rank:
    """A rank that is a thread of this process."""

    def __init__(self, rank, rows, barrier):
        self.rank, self.size, self._rows, self._barrier = rank, len(rows), rows, barrier

    def gather_rows(self, row):
        self._rows[self.rank] = row
        self._barrier.wait()
        given = np.stack(self._rows)
        self._barrier.wait()
        return given


def leaders_of(*changes):
    """Let ranks with changed configurations find their nodes; return the leader of each rank."""
    size = len(changes)
    rows, barrier = [None] * size, threading.Barrier(size, timeout=PATIENCE_S)

    def find(rank):
        return find_nodes(Rank(rank, rows, barrier), **changes[rank]).here[0]

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(find, range(size)))


@pytest.mark.parametrize("by_name", [False, True])
def test_ranks_of_one_machine_find_each_other(monkeypatch, by_name):
    def refuse():
        raise OSError("this system has no files without names")

    if by_name:
        monkeypatch.setattr(offers, "make_nameless", refuse)
    made, create = [], segments.create_named

    def note(name):
        made.append(segments.SHM_FOLDER / name.lstrip("/"))
        return create(name)

    monkeypatch.setattr(segments, "create_named", note)
    apart = {"pretended": (0, 1, 1, 0)}
    assert leaders_of({}, {}, {}) == [0, 0, 0]
    assert leaders_of({}, {"share": False}, {}) == [0, 1, 0]
    assert leaders_of(apart, apart, apart, apart) == [0, 1, 1, 0]
    assert bool(made) == by_name
    assert not any(path.exists() for path in made)


def test_rank_without_shared_memory_is_alone(monkeypatch):
    def refuse(*_):
        raise OSError("no /dev/shm here")

    monkeypatch.setattr(offers, "make_nameless", refuse)
    monkeypatch.setattr(offers.segments, "create_named", refuse)
    assert leaders_of({}, {}) == [0, 1]


@pytest.mark.parametrize(
    ("found", "leaders"),
    [
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 1], [0, 0, 2]),  # rank 2 can open a file of rank 1, but no file of rank 0
        ([0, 1, 1, 0], [0, 1, 1, 0]),
        ([2, 1, 2], [0, 1, 2]),  # rank 0 names a later rank, but a node is led by its first rank
    ],
)
def test_rank_whose_leader_has_joined_another_is_alone(found, leaders):
    assert confirmed(found) == leaders


def test_only_the_offered_file_is_opened(tmp_path, monkeypatch):
    file, offer = offers.make_offer(0)
    assert offers.offer_in(offer.row()) == offer
    assert offers.can_open(offer)
    for change in (
        {"word": bytes(offers.WORD_BYTES)},
        {"inode": offer.inode + 1},
        {"device": offer.device + 1},
        {"number": 10**6},
        {"pid": 2**40},
    ):
        assert not offers.can_open(offer._replace(**change))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not offers.can_open(offer)
    file.close()


def test_a_fifo_that_a_peer_points_at_is_not_opened(tmp_path):
    """Opening a FIFO would block this rank, and would wake a process that awaits a reader."""
    os.mkfifo(tmp_path / "fifo")
    path = os.open(tmp_path / "fifo", os.O_PATH)
    status = os.fstat(path)
    offer = offers.Offer(0, os.getpid(), path, status.st_dev, status.st_ino)
    assert not offers.can_open(offer)
    os.close(path)
