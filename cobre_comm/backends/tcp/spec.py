"""What the ``tcp`` backend is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cobre_comm.backends.spec import BackendSpec, Job
from cobre_comm.config import TcpConfig

if TYPE_CHECKING:
    from cobre_kernels.machine.kernel import Kernel

    from cobre_comm.communicator import Communicator


def _create(config: TcpConfig | None) -> Communicator:
    from cobre_comm.backends.tcp.backend import TcpBackend

    return TcpBackend(TcpConfig.from_env() if config is None else config)


def _is_available() -> bool:
    return os.name == "posix"


def _detect(environ: Mapping[str, str]) -> str:
    return "COBRE_TCP_COORDINATOR" if environ.get("COBRE_TCP_COORDINATOR") else ""


def _kernels() -> Sequence[Kernel]:
    from cobre_comm.backends.tcp.backend import KERNELS

    return list(KERNELS)


def _rank_variables(job: Job, rank: int) -> dict[str, str]:
    assert job.meeting is not None  # the launcher holds a port by now
    return {
        "COBRE_TCP_COORDINATOR": job.meeting.host,
        "COBRE_TCP_PORT": str(job.meeting.port),
        "COBRE_TCP_BIND_ADDR": job.meeting.bind_addr,
        "COBRE_TCP_RANK": str(rank),
        "COBRE_TCP_SIZE": str(job.size),
        "COBRE_TCP_TOKEN": job.token,
    }


TCP = BackendSpec(
    name="tcp",
    number=2,
    about="processes of one or many machines, over sockets",
    timeout_variable="COBRE_TCP_TIMEOUT_SECS",
    config=TcpConfig,
    create=_create,
    is_available=_is_available,
    detect=_detect,
    kernels=_kernels,
    rank_variables=_rank_variables,
    place_variables=(
        "COBRE_TCP_BIND_ADDR",
        "COBRE_TCP_COORDINATOR",
        "COBRE_TCP_PORT",
        "COBRE_TCP_RANK",
        "COBRE_TCP_SIZE",
        "COBRE_TCP_TOKEN",
    ),
)
