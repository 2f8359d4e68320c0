"""The specification of the ``tcp`` backend."""

from cobre_comm.backends.spec import BackendSpec, JobFacts
from cobre_comm.backends.tcp.foreign import configured
from cobre_comm.config import TcpConfig


def _rank_variables(job: JobFacts, rank: int) -> dict[str, str]:
    assert job.rendezvous is not None  # the launcher holds a port by now
    return {
        "COBRE_TCP_COORDINATOR": job.rendezvous.host,
        "COBRE_TCP_PORT": str(job.rendezvous.port),
        "COBRE_TCP_BIND_ADDR": job.rendezvous.bind_addr,
        "COBRE_TCP_RANK": str(rank),
        "COBRE_TCP_SIZE": str(job.size),
        "COBRE_TCP_TOKEN": job.token,
    }


TCP = BackendSpec(
    name="tcp",
    number=2,
    about="processes of one or many machines, over sockets",
    module="cobre_comm.backends.tcp.backend",
    class_name="TcpBackend",
    config=TcpConfig,
    configured=configured,
    timeout_variable="COBRE_TCP_TIMEOUT_SECS",
    auto_variables=("COBRE_TCP_COORDINATOR",),
    place_variables=(
        "COBRE_TCP_BIND_ADDR",
        "COBRE_TCP_COORDINATOR",
        "COBRE_TCP_PORT",
        "COBRE_TCP_RANK",
        "COBRE_TCP_SIZE",
        "COBRE_TCP_TOKEN",
    ),
    rank_variables=_rank_variables,
)
