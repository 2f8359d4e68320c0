"""What the ``local`` backend is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cobre_comm.backends.spec import BackendSpec, Job

if TYPE_CHECKING:
    from cobre_kernels.machine.kernel import Kernel

    from cobre_comm.communicator import Communicator


def _create(config: None) -> Communicator:
    from cobre_comm.backends.local.backend import LocalBackend

    return LocalBackend()


def _detect(environ: Mapping[str, str]) -> str:
    return ""


def _kernels() -> Sequence[Kernel]:
    from cobre_comm.backends.local.backend import KERNELS

    return list(KERNELS)


def _rank_variables(job: Job, rank: int) -> dict[str, str]:
    return {}


LOCAL = BackendSpec(
    name="local",
    number=0,
    about="one process",
    timeout_variable="",
    config=None,
    create=_create,
    is_available=lambda: True,
    detect=_detect,
    kernels=_kernels,
    rank_variables=_rank_variables,
    place_variables=(),
)
