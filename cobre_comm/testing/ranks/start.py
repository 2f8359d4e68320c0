"""Starting the ranks of a job, as their backend wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cobre_comm.processes.loop import Loop
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.job import RankJob, start_process


def start_job(
    backend: str,
    environment: Mapping[str, str],
    rank_environments: Sequence[Mapping[str, str]],
) -> RankJob:
    """Start as many processes as there are environments of ranks.

    Parameters
    ----------
    backend : str
        Name of the backend.
    environment : mapping
        Variables of all ranks.
    rank_environments : sequence of mapping
        Further variables of each rank.
    """
    name = BackendName.parse(backend)
    if name.is_mpi:
        from cobre_comm.testing.ranks.mpi_job import MpiJob

        # Which MPI it is must be known before the processes begin; the rest may come later.
        return MpiJob({**name.environment(), **environment}, rank_environments)
    loop = Loop()
    return RankJob(loop, [start_process(loop, rank, {**environment, **own})
                          for rank, own in enumerate(rank_environments)])  # fmt: skip
