"""Benchmarks whose ranks are a script of their own in this folder: one job for all that is asked.

A test module lists its figures, of which each is one benchmark; the first one that runs starts the
job of all selected figures with the same ranks and library. No two jobs run at a time.
"""

from __future__ import annotations

import faulthandler
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import end
from measurements import LIBRARY_NAMES
from mpi_start import LIBRARIES, command, environment
from recording import ratios
from tcp_openmpi import result_of

DEADLINE_S = 1800
OURS = "cobre_comm"
PEER = "peer"  # the MPI of the job
PARAM = "script_figure"  # another name than that of the figures of `jobs.Jobs`


@dataclass(frozen=True)
class ScriptFigure:
    """One side of one case in a job.

    Attributes
    ----------
    label, side
        As in the report; the side ``peer`` is the job's MPI.
    ranks, library
        The job.
    nodes
        What ``COBRE_MPI_PRETEND_NODES`` is in the job.
    """

    label: str
    side: str
    ranks: int
    library: str
    nodes: str | None = None

    @property
    def job(self) -> tuple:
        return self.ranks, self.library, self.nodes

    @property
    def side_name(self) -> str:
        return LIBRARY_NAMES[self.library] if self.side == PEER else self.side

    @property
    def id(self) -> str:
        words = [self.label, f"{self.ranks} ranks", self.library, self.side_name]
        return "-".join(re.sub(r"[^\w.+-]+", "_", word) for word in words)


def parametrize(metafunc: pytest.Metafunc, figures: list[ScriptFigure]) -> None:
    """Make each figure a test, in the order of the jobs."""
    figures = sorted(figures, key=lambda figure: (figure.ranks, LIBRARIES.index(figure.library)))
    metafunc.parametrize(PARAM, figures, ids=lambda figure: figure.id)


class ScriptJobs:
    """The jobs of a module's figures, and what they measured.

    Parameters
    ----------
    request : pytest.FixtureRequest
        Of a fixture with the module's scope.
    script : str
        Name of a file of this folder; rank 0 prints a mark and a dict.
    words_of : callable
        Gets the job's selected figures, returns the script's arguments but for rounds and block.
    """

    def __init__(
        self,
        request: pytest.FixtureRequest,
        script: str,
        words_of: Callable[[list[ScriptFigure]], list],
    ) -> None:
        self._script = str(Path(__file__).with_name(script))
        self._words_of = words_of
        config = request.config
        self._options = ["--rounds", config.getoption("rounds")]
        self._options += ["--block", config.getoption("block")]
        self._figures = [
            item.callspec.params[PARAM]
            for item in request.session.items
            if item.path == request.path and PARAM in getattr(item, "callspec", NoParams).params
        ]
        self._results: dict[tuple, dict | Exception] = {}

    def result(self, figure: ScriptFigure) -> dict:
        """Return what rank 0 of the figure's job has printed; a failure is every figure's."""
        if not Path(command(figure.library, 1, "none")[0]).exists():
            pytest.skip(f"{figure.library} is not there: pip install {figure.library}")
        if figure.job not in self._results:
            faulthandler.cancel_dump_traceback_later()  # a job takes longer than a test may
            mine = [other for other in self._figures if other.job == figure.job]
            words = [*self._words_of(mine), *self._options]
            try:
                self._results[figure.job] = run_script(self._script, words, *figure.job)
            except Exception as error:
                self._results[figure.job] = error
        result = self._results[figure.job]
        if isinstance(result, Exception):
            raise RuntimeError(f"{self._script}, {figure.job}: {result}") from result
        return result


def run_script(script: str, words: list, ranks: int, library: str, nodes: str | None) -> dict:
    """Run a script on ranks of an MPI library; return what rank 0 says, and the load before."""
    load = os.getloadavg()[0]
    launched = [*command(library, ranks, "none"), sys.executable, script, *map(str, words)]
    environ = environment(library, ranks, nodes)
    with subprocess.Popen(launched, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate(timeout=DEADLINE_S)
        finally:
            end([process])  # asks the launcher, which then ends its ranks
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}; stderr says why")
    return {**result_of(output), "load_before": load}


class NoParams:
    """The call specification of a test without parameters."""

    params: dict = {}  # noqa: RUF012  # never written


def told(figure: ScriptFigure, result: dict) -> dict:
    """Return what all benchmarks of a job tell ``recording.record``, whatever was measured."""
    return {
        "label": figure.label,
        "ranks": figure.ranks,
        "beside": figure.library,
        "side": figure.side_name,
        "backend": "shm" if figure.side == OURS else None,
        "library": result["mpi"],
        "load_before": result["load_before"],
    }


def ratio_to(figure: ScriptFigure, samples: dict[str, list[float]]) -> dict:
    """Return the ratios of our side to all others of the case, by their names in the report."""
    if figure.side != OURS:
        return {}
    others = {LIBRARY_NAMES[figure.library] if side == PEER else side: s
              for side, s in samples.items() if side != OURS}  # fmt: skip
    return {"ratio_to": {side: ratios(samples[OURS], s) for side, s in others.items()}}
