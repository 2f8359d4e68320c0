"""Running a function on real ranks: for tests of this project and of other backends."""

from cobre_comm.testing.backend_name import BackendName, leaders, node_of_ranks
from cobre_comm.testing.ranks.outcome import Outcome, RanksFailed
from cobre_comm.testing.ranks.pool import RankPool
from cobre_comm.testing.ranks.run import run_ranks, run_ranks_outcomes
from cobre_comm.testing.ranks.surroundings import leftovers, new_job_name, rank_environment

__all__ = [
    "BackendName",
    "Outcome",
    "RankPool",
    "RanksFailed",
    "leaders",
    "leftovers",
    "new_job_name",
    "node_of_ranks",
    "rank_environment",
    "run_ranks",
    "run_ranks_outcomes",
]
