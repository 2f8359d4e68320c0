"""Runs a function on real ranks: for tests of this project, of programs, and of other backends.

A name of this package loads its module when the name is first used, because every run of pytest
imports this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cobre_comm.testing.backend_name import BackendName as BackendName
    from cobre_comm.testing.backend_name import leaders as leaders
    from cobre_comm.testing.backend_name import node_of_ranks as node_of_ranks
    from cobre_comm.testing.raising import rank_raises as rank_raises
    from cobre_comm.testing.ranks.outcome import Outcome as Outcome
    from cobre_comm.testing.ranks.outcome import RanksFailed as RanksFailed
    from cobre_comm.testing.ranks.pool import RankPool as RankPool
    from cobre_comm.testing.ranks.run import run_ranks as run_ranks
    from cobre_comm.testing.ranks.run import run_ranks_outcomes as run_ranks_outcomes
    from cobre_comm.testing.ranks.surroundings import leftovers as leftovers
    from cobre_comm.testing.ranks.surroundings import new_job_name as new_job_name
    from cobre_comm.testing.ranks.surroundings import rank_environment as rank_environment

_HOME_OF = {
    "BackendName": "backend_name",
    "Outcome": "ranks.outcome",
    "RankPool": "ranks.pool",
    "RanksFailed": "ranks.outcome",
    "leaders": "backend_name",
    "leftovers": "ranks.surroundings",
    "new_job_name": "ranks.surroundings",
    "node_of_ranks": "backend_name",
    "rank_environment": "ranks.surroundings",
    "rank_raises": "raising",
    "run_ranks": "ranks.run",
    "run_ranks_outcomes": "ranks.run",
}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
