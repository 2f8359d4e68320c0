"""Starts the ranks of a job in the way that their backend needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.members import RankJob


def start_job(
    backend: str,
    environment: Mapping[str, str],
    rank_environments: Sequence[Mapping[str, str]],
    job_class: type[RankJob] = RankJob,
) -> RankJob:
    """Start a process for each of the environments of ranks; ``environment`` is added to each.

    ``job_class`` makes the job if the ranks are children of this process.
    """
    name = BackendName.parse(backend)
    if name.is_mpi:
        from cobre_comm.testing.ranks.mpi_job import MpiJob

        # The MPI must be chosen before the processes start; other variables may be set later.
        return MpiJob({**name.environment(), **environment}, rank_environments)
    job = job_class(name.kind, len(rank_environments))
    try:
        for rank, own in enumerate(rank_environments):
            job.start(rank, {**environment, **own})
    except BaseException:
        job.close()
        raise
    return job
