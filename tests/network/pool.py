"""Ranks that stay, each on one of the hosts."""

from cobre_comm.processes.loop import Loop
from cobre_comm.testing import RankPool
from cobre_comm.testing.ranks.job import RankJob, start_process


class HostedPool(RankPool):
    """As ``RankPool``, with rank r on ``hosts[r]``; they meet at the address of rank 0's host."""

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
        loop, members = Loop(), []
        for rank, host in enumerate(self._hosts):
            with host.inside():
                members.append(start_process(loop, rank, self._env))
        return RankJob(loop, members)
