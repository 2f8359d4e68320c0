"""Jobs on hosts of their own: network namespaces of this machine, with cables of a given rate.

Such a job needs root (`tests/network/hosts.py`). An mpiexec starts all ranks on the first host, and
each rank then moves to the network of its own host. So all ranks stay children of one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.plan import NO_LIMIT, OPEN_MPI_OVER_TCP, Job
from bench.ranks.job import take_all
from bench.ranks.world import COORDINATOR, NODES
from tests.network.hosts import MPI_ON_CABLE, Network, inside


@contextmanager
def on_hosts(job: Job) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Make the hosts that a job's cables connect; this thread is on the first host meanwhile.

    Gives the name of the host of each rank, and the variables of all ranks.
    """
    places = job.places
    with Network(max(places) + 1) as network:
        for host in network.hosts:
            host.shape(None if job.cable == NO_LIMIT else job.cable)
        names = [host.name for host in network.hosts]
        environment = {
            **OPEN_MPI_OVER_TCP,
            **MPI_ON_CABLE,
            COORDINATOR: network.hosts[0].address,
            NODES: ",".join(map(str, places)),
        }
        with inside(names[0]):
            yield [names[place] for place in places], environment


def take_there(comm, hosts: list[str], *args: object) -> dict:
    """Move this rank to the network of its host, and take measurements there."""
    with inside(hosts[int(os.environ["PMIX_RANK"])]):
        return take_all(comm, *args)
