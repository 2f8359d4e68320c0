"""Ranks that stay on their hosts, and run many bodies."""

from cobre_comm.testing import RankPool
from cobre_comm.testing.ranks.members import RankJob, pack_order
from cobre_comm.testing.ranks.outcome import values_of
from cobre_comm.testing.ranks.start_job import start_job
from tests.network.hosts import MPI_ON_CABLE, inside, move_to

START_S = 60


class HostedPool(RankPool):
    """A ``RankPool`` with rank r on ``hosts[r]``; ranks meet at the address of rank 0's host."""

    def __init__(self, hosts):
        super().__init__("tcp", len(hosts))
        self._hosts = hosts
        self._rendezvous = {
            "COBRE_TCP_COORDINATOR": hosts[0].address,
            "COBRE_TCP_BIND_ADDR": "0.0.0.0",
        }

    def run_outcomes(self, body, *args, env=None, **keywords):
        env = {**self._rendezvous, **(env or {})}
        return super().run_outcomes(body, *args, env=env, **keywords)

    def _start(self):
        hosts = self._hosts

        class OnHosts(RankJob):
            def start(self, rank, environment):
                with hosts[rank].inside():
                    super().start(rank, environment)

        return start_job(self.backend, self._env, [{} for _ in hosts], OnHosts)


class MpiHostedPool(RankPool):
    """A pool of an MPI's ranks; each rank is in the network of its host, but not in its room.

    ``mpiexec`` starts all ranks on the first host, and each rank moves to the network of its own
    host. A rank cannot be in a room, because children of ``mpiexec`` can only be processes of this
    machine. The name of the backend says which ranks share memory.
    """

    def __init__(self, backend, hosts):
        super().__init__(backend, len(hosts), env=MPI_ON_CABLE)
        self._names = [host.name for host in hosts]

    def _start(self):
        with inside(self._names[0]):
            job = start_job(self.backend, self._env, [{} for _ in self._names])
        orders = [pack_order("", True, {}, move_to, (name,)) for name in self._names]
        values_of(job.run(orders, START_S))
        return job

    def end(self):
        """Kill the ranks, which would otherwise wait for each other at the end of MPI."""
        if self._job is not None:
            self._job.kill()
        self.close()
