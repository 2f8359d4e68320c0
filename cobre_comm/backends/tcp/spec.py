"""The specification of the ``tcp`` backend."""

from cobre_comm.backends.spec import BackendSpec, JobFacts, Rendezvous
from cobre_comm.backends.tcp.foreign import configured
from cobre_comm.config import TcpConfig


def _where(job: JobFacts) -> Rendezvous:
    assert job.rendezvous is not None  # the launcher has reserved a port before
    return job.rendezvous


TCP = BackendSpec(
    name="tcp",
    number=2,
    config=TcpConfig,
    configured=configured,
    timeout_variable="COBRE_TCP_TIMEOUT_SECS",
    auto_variables=("COBRE_TCP_COORDINATOR",),
    rank_variables={
        "COBRE_TCP_COORDINATOR": lambda job, rank: _where(job).host,
        "COBRE_TCP_PORT": lambda job, rank: str(_where(job).port),
        "COBRE_TCP_BIND_ADDR": lambda job, rank: _where(job).bind_addr,
        "COBRE_TCP_RANK": lambda job, rank: str(rank),
        "COBRE_TCP_SIZE": lambda job, rank: str(job.size),
        "COBRE_TCP_TOKEN": lambda job, rank: job.token,
    },
)
