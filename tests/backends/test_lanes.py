"""How many lanes nodes have: the cable, the cores and ranks of a node, and the user decide."""

import pytest

from cobre_comm.backends.nodes import lanes
from cobre_comm.backends.nodes.node_order import node_order_of
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.system import cores as cores_of_machine


class Answers:
    """A group in which the other ranks have chosen already; ``own`` is the choice of this rank."""

    def __init__(self, *others):
        self.others, self.own = others, None

    def agree(self, value):
        self.own = value
        return min([value, *self.others])


def placed(*places):
    """Return the node order of rank 0, where rank r is on node ``places[r]``."""
    return node_order_of([places.index(place) for place in places], 0)


def write_card(root, name, speed, *, is_virtual=False):
    """Write a network card as sysfs shows it; a virtual card has no ``device``."""
    card = root / name
    card.mkdir(parents=True)
    if not is_virtual:
        (card / "device").mkdir()
    if speed is not None:
        (card / "speed").write_text(f"{speed}\n")


CARDS = {
    "none": ([], 0),
    "one": ([("eth0", 1000, False)], 1000),
    "the fastest": ([("eth0", 1000, False), ("ib0", 200_000, False)], 200_000),
    "without a cable": ([("eth0", -1, False)], 0),
    "virtual": ([("veth0", 10_000, True), ("eth0", 1000, False)], 1000),
    "without a speed": ([("wlan0", None, False)], 0),
    "with an odd speed": ([("eth0", "unknown", False), ("eth1", 2500, False)], 2500),
}


@pytest.mark.parametrize("which", CARDS)
def test_cable(which, tmp_path):
    cards, mbps = CARDS[which]
    for name, speed, is_virtual in cards:
        write_card(tmp_path, name, speed, is_virtual=is_virtual)
    assert lanes.cable_mbps(tmp_path) == mbps


def test_no_sysfs(tmp_path):
    assert lanes.cable_mbps(tmp_path / "missing") == 0


# The speed of the cable in Mbit/s, the cores, the ranks of each node, and the lanes that follow:
# one lane for each 20 Gbit/s, rounded up.
CHOICES = [
    (0, 64, 8, 1),
    (1000, 64, 8, 1),
    (20_000, 64, 8, 1),
    (25_000, 64, 8, 2),
    (100_000, 64, 8, 5),
    (400_000, 64, 16, 8),  # never more lanes than are useful
    (100_000, 64, 3, 3),  # never more lanes than ranks
    (100_000, 7, 8, 1),  # one lane, because ranks share cores
]


@pytest.mark.parametrize(("mbps", "cores", "ranks", "right"), CHOICES)
def test_choice(monkeypatch, mbps, cores, ranks, right):
    monkeypatch.setattr(lanes, "cable_mbps", lambda: mbps)
    monkeypatch.setattr(cores_of_machine, "usable_cores", lambda: cores)
    order = placed(*[0] * ranks, *[1] * ranks)
    assert lanes.with_lanes(Answers(), order, None).lanes == right


@pytest.mark.parametrize(
    ("places", "wanted", "others", "right"),
    [
        ([0, 0, 0, 1, 1, 1], 2, [], 2),
        ([0, 0, 0, 1, 1, 1], 9, [], 3),
        ([0, 0, 0, 0, 1, 1], 4, [], 2),  # the smallest node has two ranks
        ([0, 0, 0, 1, 1, 1], 3, [2], 2),  # another rank wants two lanes
    ],
)
def test_wish(places, wanted, others, right):
    group = Answers(*others)
    assert lanes.with_lanes(group, placed(*places), wanted).lanes == right


@pytest.mark.parametrize("places", [[0, 0, 0], [0, 1, 2]])
def test_one_node_and_flat_ones_have_one_lane(places):
    """No rank is asked where there is one node, or where each node has one rank, its leader."""
    group = Answers()
    assert lanes.with_lanes(group, placed(*places), 4).lanes == 1
    assert group.own is None


@pytest.mark.parametrize("leaders", ["0", "-1", "two", "1.5"])
def test_what_is_no_number_of_leaders(monkeypatch, leaders):
    monkeypatch.setenv("COBRE_COMM_LEADERS", leaders)
    monkeypatch.setenv("COBRE_TCP_RANK", "0")
    monkeypatch.setenv("COBRE_TCP_SIZE", "1")
    with pytest.raises(InitializationFailed, match="COBRE_COMM_LEADERS"):
        TcpConfig.from_env()
