"""Jobs on hosts of their own: network namespaces of this machine, whose cables have a rate.

It needs root (`tests/network/hosts.py`). An mpiexec starts all ranks on the first host, and each
rank then moves to the network of its own host. So all ranks stay children of one process.
"""

from __future__ import annotations

import os

from bench.jobs import run_job
from bench.plan import NO_LIMIT, OPEN_MPI_OVER_TCP, Job
from bench.ranks.job import take_all
from bench.ranks.world import COORDINATOR, NODES
from tests.network.hosts import MPI_ON_CABLE, Network, inside


def run_on_hosts(job: Job, *args: object) -> dict:
    """Run the ranks of a job on the hosts that its cables connect; return the value of rank 0."""
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
        hosts = [names[place] for place in places]
        with inside(names[0]):
            return run_job(job, take_there, hosts, *args, **environment)


def take_there(comm, hosts: list[str], *args: object) -> dict:
    """Move this rank to the network of its host; take measurements there."""
    with inside(hosts[int(os.environ["PMIX_RANK"])]):
        return take_all(comm, *args)
