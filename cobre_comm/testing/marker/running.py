"""Running a marked test: its arguments go to the ranks, and the results of the ranks return."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cobre_comm.testing.marker.jobs import MarkedJob, refuse
from cobre_comm.testing.marker.on_rank import Call, meet, run_test
from cobre_comm.testing.marker.verdict import judge
from cobre_comm.testing.ranks.run import run_ranks_outcomes
from cobre_comm.testing.suite.here import skip_unless_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from cobre_comm.testing.ranks.outcome import Outcome
    from cobre_comm.testing.ranks.pool import RankPool

    PoolOf = Callable[[str, int], RankPool]


def run_on_ranks(item: pytest.Function, job: MarkedJob, pool_of: PoolOf) -> None:
    """Run a marked test on every rank of a job; fail or skip the test as the ranks did."""
    outcomes = _run(_call_of(item), job, pool_of)
    for each in outcomes:
        if each.output and not (each.timed_out or each.ended):  # else judge shows the output
            item.add_report_section("call", f"output of rank {each.rank}", each.output)
    judge(job, outcomes)


def _run(call: Call, job: MarkedJob, pool_of: PoolOf) -> list[Outcome]:
    limits: Any = {"timeout_s": job.timeout_s, "env": job.env}
    if not job.connect:
        backend = skip_unless_here(job.backend)
        return run_ranks_outcomes(backend, job.size, run_test, call, connect=False, **limits)
    pool = pool_of(job.backend, job.size)
    if not pool.pids:
        pool.run(meet)
    return pool.run_outcomes(run_test, call, fresh=True, **limits)


def _call_of(item: pytest.Function) -> Call:
    function: Any = item.function
    names = inspect.signature(function).parameters.keys() & item.funcargs.keys() - {"comm"}
    return Call(
        module=function.__module__,
        path=str(item.path),
        function=function.__qualname__,
        values={name: _pickled(name, item.funcargs[name]) for name in sorted(names)},
        rewritten=_rewritten(item.module),
        options=_options(item.config),
    )


def _pickled(name: str, value: object) -> bytes:
    pickled, why = _try_pickle(value)
    if why:
        refuse(
            f"the argument {name} cannot go to the ranks, because it does not pickle ({why}); "
            "make it in the test itself"
        )
    return pickled


def _try_pickle(value: object) -> tuple[bytes, str]:
    """Return the pickled value and an empty string, or the reason why it does not pickle."""
    try:
        return pickle.dumps(value), ""
    except Exception as error:
        return b"", str(error) or type(error).__name__


def _rewritten(module: Any) -> list[str]:
    """Return the modules in which pytest rewrites asserts; none if it rewrites no assert here."""
    hook = type(module.__loader__)
    if hook.__module__ != "_pytest.assertion.rewrite":
        return []
    return [name for name, each in [*sys.modules.items()] if type(_loader(each)) is hook]


def _loader(module: Any) -> object:
    return getattr(module, "__loader__", None)


def _options(config: pytest.Config) -> list[str]:
    """Return the options of this session that decide how a failure is shown."""
    options = [f"--tb={config.getoption('tbstyle')}", f"--assert={config.getoption('assertmode')}"]
    options += ["--showlocals"] * config.getoption("showlocals")
    verbosity = config.get_verbosity()
    return options + (["-" + "v" * verbosity] if verbosity > 0 else [])
