"""How many ranks lead each node: the cable, the cores and the number of ranks decide."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.system.cores import have_cores

LEADER_MBPS = 20_000  # one leader moves 2.5 GB/s in each direction (docs/design/scale.md)
MOST_LANES = 8  # the limit if this file chooses; a user may choose more
INTERFACES = Path("/sys/class/net")


def with_lanes(group: Group, order: NodeOrder, wanted: int | None) -> NodeOrder:
    """Return the order with as many lanes as all ranks can have; collective.

    ``wanted`` is the number of leaders of a node that the user has chosen; None if there is no
    choice.
    """
    if order.is_flat or order.nodes == 1:
        return order
    lanes = _chosen(len(order.here)) if wanted is None else wanted
    return dataclasses.replace(order, lanes=group.agree(min(lanes, order.narrowest)))


def _chosen(ranks: int) -> int:
    """Return how many leaders fill the machine's cable; 1 if its ``ranks`` share cores."""
    if not have_cores(ranks):
        return 1  # several leaders would take each other's cores
    return min(max(-(-cable_mbps() // LEADER_MBPS), 1), MOST_LANES)


def cable_mbps(interfaces: Path = INTERFACES) -> int:
    """Return the speed of the fastest network card, in Mbit/s; 0 if no speed is known.

    A virtual interface, and a card without a cable, has no speed.
    """
    speeds = [0]
    for card in interfaces.glob("*/device"):
        with contextlib.suppress(OSError, ValueError):
            speeds.append(int((card.parent / "speed").read_text()))
    return max(speeds)
