"""Starting the ranks of a job, as their backend wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.link import RankLink
from cobre_comm.testing.ranks.process import RankProcess


def start_ranks(
    backend: str,
    environment: Mapping[str, str],
    rank_environments: Sequence[Mapping[str, str]],
    *,
    survivors: bool = False,
) -> list[RankLink]:
    """Start as many processes as there are environments of ranks; return them in rank order.

    Parameters
    ----------
    backend : str
        Name of the backend.
    environment : mapping
        Variables of all ranks.
    rank_environments : sequence of mapping
        Further variables of each rank.
    survivors : bool
        Leave the other ranks alone when one has ended, where mpiexec would end them all.
    """
    name = BackendName.parse(backend)
    if name.is_mpi:
        from cobre_comm.testing.ranks.mpi_job import MpiJob

        # Which MPI it is must be known before the processes begin; the rest may come later.
        chosen = {**name.environment(), **environment}
        job = MpiJob(len(rank_environments), chosen, rank_environments, survivors=survivors)
        return list(job.ranks)
    return [RankProcess(r, {**environment, **rank_environments[r]})
            for r in range(len(rank_environments))]  # fmt: skip


def end_ranks(processes: Sequence[RankLink]) -> None:
    """Let all leave at once, then see to it that each has."""
    for process in processes:
        process.hang_up()
    for process in processes:
        process.close()
