"""The conformance suite: what every backend must do, for this project's tests and for others'.

What ranks do (``bodies``, ``calls``, ``reference``) needs nothing but the package; the classes of
tests are loaded when they are first used, and need pytest and hypothesis.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME_OF = {
    "AllgathervTests": "allgatherv",
    "AllreduceTests": "allreduce",
    "BarrierTests": "barrier",
    "BroadcastTests": "broadcast",
    "ConformanceSuite": "whole",
    "DisagreementTests": "disagreement",
    "ErrorTests": "errors",
    "ExactSumTests": "exact",
    "FEATURES": "suite",
    "Grid": "grid",
    "LateRankTests": "late_ranks",
    "LostRankTests": "lost_ranks",
    "MidCollectiveTests": "mid_collective",
    "MisuseTests": "misuse",
    "PropertyTests": "properties",
    "RankSizeTests": "rank_size",
    "RegionTests": "regions",
    "SequenceTests": "sequences",
    "SignalTests": "signals",
    "Suite": "suite",
    "ThreadAndForkTests": "threads_and_forks",
    "needs": "suite",
}
MODULES = sorted({f"{__name__}.{module}" for module in _HOME_OF.values()} | {f"{__name__}.checks"})
NEEDED = ("hypothesis", "pytest")

__all__ = sorted(_HOME_OF)  # names are loaded on first use


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise ModuleNotFoundError(
            f"{__name__}.{name} needs {error.name}: pip install 'cobre-comm[conformance]'",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
