"""The algorithms of Open MPI and NCCL in the simulation, against closed forms."""

from dataclasses import replace

import pytest

from bench.nodes.simulation import nccl, open_mpi
from bench.nodes.simulation.cluster import Cluster
from bench.nodes.simulation.nccl import links_of
from tests.documents.test_simulation import MB, without_costs

NODES, RANKS = 8, 16
SIZE = NODES * RANKS


def seconds(at, body, *words, are_alike=True):
    return Cluster(at, are_alike=are_alike).seconds(lambda node: body(node, *words))


@pytest.mark.parametrize("channels", [1, 4])
def test_a_ring_of_all_ranks_carries_the_blocks_of_all_others(channels):
    at = without_costs(NODES, RANKS)
    least = 64 * MB * (SIZE - 1) / SIZE / at.stream
    assert seconds(at, nccl.allgatherv, 64 * MB, channels) == pytest.approx(least, 0.01)
    assert seconds(at, nccl.ring_allreduce, 64 * MB, channels) == pytest.approx(2 * least, 0.01)


def test_two_trees_carry_a_payload_up_and_down():
    at = without_costs(NODES, RANKS)
    taken = seconds(at, nccl.tree_allreduce, 16 * MB, 1, are_alike=False)
    assert 2 * 16 * MB / at.stream < taken < 2.3 * 16 * MB / at.stream


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 16, 100, 256])
def test_a_tree_is_binary_and_short(nodes):
    links = links_of(nodes)
    assert sorted(child for _, children in links for child in children) == list(range(1, nodes))
    assert all(len(children) <= 2 for _, children in links)
    for node in range(nodes):
        depth = 0
        while node:
            node, depth = links[node][0], depth + 1
        assert depth <= nodes.bit_length()


def test_open_mpi_gathers_short_blocks_once_for_each_rank_of_a_node():
    at = without_costs(NODES, RANKS)
    block, distance, blocks = 1024, 1, 0
    while distance < SIZE:
        blocks += min(distance, RANKS) * min(distance, SIZE - distance)
        distance *= 2
    taken = seconds(at, open_mpi.allgatherv, block * SIZE)
    assert taken == pytest.approx(block * blocks / at.stream, 0.01)
    assert blocks > 0.8 * RANKS * (SIZE - RANKS)


def test_open_mpi_exchanges_long_blocks_with_neighbours():
    at = without_costs(NODES, RANKS)
    assert seconds(at, open_mpi.allgatherv, 64 * MB) == pytest.approx(64 * MB / at.stream, 0.01)


def test_rabenseifner_halves_within_nodes_first():
    at = without_costs(NODES, RANKS)
    least = 2 * 16 * MB * (NODES - 1) / NODES / at.stream
    assert seconds(at, open_mpi.rabenseifner, 16 * MB) == pytest.approx(least, 0.02)


def test_han_waits_for_a_reduction_between_leaders_in_each_segment():
    at = replace(without_costs(16, 4, gbits=1e6), alpha=1e-3)
    taken = seconds(at, open_mpi.allreduce, 16 * MB, are_alike=False)
    segments = 16 * MB // open_mpi.HAN_SEGMENT_BYTES + 1
    hops = 2 * 4  # of a halving and of a gathering of 16 nodes; a chain of 15 goes on meanwhile
    assert hops * segments * at.alpha < taken < 15 * segments * at.alpha
