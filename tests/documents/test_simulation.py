"""The simulation of collectives between nodes: closed forms, limits, and what noise does."""

from dataclasses import replace
from itertools import pairwise

import pytest

from bench.nodes import simulate
from bench.nodes.figures import least_bytes
from bench.nodes.model import HEADERS, Nodes
from bench.nodes.simulate import POINTS_BYTES, seconds_of
from bench.nodes.simulation import collectives
from bench.nodes.simulation.choices import with_half
from bench.nodes.simulation.cluster import Cluster
from bench.nodes.simulation.network import PACKET_BYTES, Network
from bench.nodes.simulation.verbs import to_all
from bench.nodes.terms import cluster

MB = 1_000_000
LARGE = [
    ("allgatherv", 64 * MB, False),
    ("allgatherv", 64 * MB, True),
    ("broadcast", 32 * MB, True),
    ("sum", 4 * MB, True),
]
LAYOUTS = [(2, 1), (3, 1), (5, 4), (8, 16)]


def without_costs(nodes, ranks=1, gbits=8):
    """Return terms in which a cable alone takes time."""
    fast = 1e15
    return with_half(Nodes(nodes, ranks, 0.0, 0.0, 0.0, gbits * 1e9 / 8, fast, fast, fast, fast))


@pytest.mark.parametrize("nodes", [2, 3, 16])
def test_a_ring_without_latency_takes_the_bytes_of_the_others_over_the_cable(nodes):
    at = without_costs(nodes)
    expected = 64 * MB * (nodes - 1) / nodes / at.stream
    assert seconds_of("allgatherv", 64 * MB, at, private=False) == pytest.approx(expected, 2e-3)


@pytest.mark.parametrize("nodes", [2, 3, 16])
def test_a_broadcast_without_latency_takes_a_payload_and_a_packet_for_each_hop(nodes):
    at = without_costs(nodes)
    expected = (16 * MB + (nodes - 2) * PACKET_BYTES) / at.stream
    assert seconds_of("broadcast", 16 * MB, at) == pytest.approx(expected, 2e-3)


def test_a_chain_without_latency_carries_a_payload_twice():
    at = replace(without_costs(4, 2), half=256 * MB)
    seconds = Cluster(at).seconds(lambda node: collectives.allreduce(node, 16 * MB))
    assert seconds == pytest.approx(2 * 16 * MB / at.stream, 5e-2)


def test_a_barrier_takes_two_steps_and_a_message_to_every_other_node():
    at = replace(without_costs(2), alpha=20e-6, message=2e-6, step=1e-6)
    assert seconds_of("barrier", 0, at) == pytest.approx(2e-6 + 20e-6 + 2 * 2e-6, 1e-2)
    many = replace(at, nodes=64)  # messages that come go on while others are sent
    assert 63 * 2 * 2e-6 < seconds_of("barrier", 0, many) < 63 * 2 * 2e-6 + 30e-6


@pytest.mark.parametrize(("nodes", "ranks"), LAYOUTS)
@pytest.mark.parametrize(("operation", "nbytes", "private"), LARGE)
def test_no_collective_is_faster_than_the_wire_or_slower_on_a_faster_one(
    nodes, ranks, operation, nbytes, private
):
    times = []
    for gbits in (1, 10, 25, 100):
        at = cluster(nodes, ranks, gbits)
        times.append(seconds_of(operation, nbytes, at, private=private))
        wire = HEADERS * at.link
        assert times[-1] > 0.999 * least_bytes(operation, nbytes, nodes, ranks) / wire
    assert all(slower > faster for slower, faster in pairwise(times))


@pytest.mark.parametrize(("operation", "nbytes", "private"), LARGE)
def test_lanes_fill_a_cable_that_one_thread_cannot(operation, nbytes, private):
    times = [
        seconds_of(operation, nbytes, cluster(4, 16, 100, lanes), private=private)
        for lanes in (1, 2, 4)
    ]
    assert all(fewer > more for fewer, more in pairwise(times))


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("lanes", [1, 2])
def test_one_node_stands_for_nodes_that_are_alike(private, lanes):
    at = with_half(cluster(8, 48, 25, lanes))

    def gather(node):
        return collectives.allgatherv(node, 64 * MB, at.size, private)

    one = Cluster(at, are_alike=True).seconds(gather)
    assert one == pytest.approx(Cluster(at).seconds(gather), 0.02)


def test_each_leader_sends_its_stripes_to_another_one_first():
    at = with_half(cluster(8, 48, 25))  # so many ranks that a sum goes by stripes

    def reduce(node):
        return collectives.allreduce(node, 4 * MB)

    apart = Cluster(at, are_alike=True).seconds(reduce)
    assert Cluster(at).seconds(reduce) == pytest.approx(apart, 0.02)


@pytest.mark.parametrize(("operation", "ranks"), [("allgatherv", 8), ("sum", 8), ("sum", 2)])
def test_rounds_that_are_counted_take_as_long_as_if_simulated(operation, ranks, monkeypatch):
    at = cluster(8, ranks, 25)
    nbytes = POINTS_BYTES if operation == "allgatherv" else 32 * MB
    counted = seconds_of(operation, nbytes, at)
    monkeypatch.setattr(collectives, "MOST_ROUNDS", 10**9)
    simulate._seconds.cache_clear()
    assert counted == pytest.approx(seconds_of(operation, nbytes, at), 0.01)


def test_noise_repeats_by_its_seed_and_takes_time():
    at = cluster(8, 16, 25, 2)

    def seconds(seed, **noise):
        simulate._seconds.cache_clear()
        return seconds_of("allgatherv", 3 * MB, at, network=Network(seed=seed, **noise))

    quiet, late = seconds(0), [seconds(seed, late=1e-3) for seed in (1, 1, 2)]
    assert late[0] == late[1] != late[2]
    assert min(late) > quiet + 0.5e-3  # the latest of 8 nodes
    jitter = [seconds(seed, jitter=1e-4) for seed in (1, 1, 2)]
    assert jitter[0] == jitter[1] != jitter[2]
    assert min(jitter) > quiet


def test_a_token_bucket_makes_up_for_pauses():
    at = without_costs(2, 4, gbits=1)
    at = replace(at, copy=10e9, memory=20e9)  # ranks copy between rounds, while the cable is idle
    pauses = seconds_of("allgatherv", 64 * MB, at)
    made_up = seconds_of("allgatherv", 64 * MB, at, network=Network(burst_bytes=128 * 1024))
    wire = 32 * MB / at.stream
    assert pauses > 1.03 * wire
    assert made_up == pytest.approx(wire, 0.01)


def gather_at_node_0(node, count):
    lane = node.lane(0)
    if node.number > 0:
        yield from lane.send(0, count)
    left = dict.fromkeys(range(1, node.at.nodes), count if node.number == 0 else 0)
    while any(left.values()):
        moved = 0
        for source in left:
            yield from lane.receive(source, left[source])
            left[source] -= lane.count
            moved += lane.count
        if not moved:
            yield lane.signal


def test_senders_to_one_node_share_its_cable_and_the_memory_of_its_port():
    at, count = without_costs(9), MB
    shared = Cluster(at).seconds(lambda node: gather_at_node_0(node, count))
    assert shared == pytest.approx(8 * count / at.stream, 0.01)
    lossy = Cluster(at, Network(port_bytes=256 * 1024, retry=5e-3))
    assert lossy.seconds(lambda node: gather_at_node_0(node, count)) > shared
    assert lossy.cables[0].lost > 0
    assert not any(cable.lost for cable in lossy.cables[1:])


def test_nodes_that_wait_for_ever_are_found():
    def one_sided(node):
        if node.number == 0:
            yield from to_all(node.lane(0), 64)

    with pytest.raises(RuntimeError, match="for ever"):
        Cluster(without_costs(2)).seconds(one_sided)
