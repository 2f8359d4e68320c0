"""Options and fixtures of the benchmarks: how long to measure, what to select, how to record."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from bench import machine
from bench.jobs import Jobs
from bench.plan import FRESH, GLOO, Figure, Options
from bench.recording import record as record_samples
from bench.recording import replayed_clock
from bench.report.data import Results, figure_of, thin
from bench.report.tables import ratio_table

HERE = Path(__file__).parent
TIMEOUT_S = 7500  # the first test of a job runs the job, and the job has a deadline of its own
# Modules that run only if the command names them.
BY_NAME = {"test_backends.py", "test_exact_sum.py", "test_growth.py", "test_hosts.py"}
MOST_SHORT_S = 1.5  # for all blocks of a measurement, with --short
SHORT = {"test_collectives.py", "test_njit_loops.py", "test_start.py"}
LONG = {"test_growth", "test_demo"}
NO_TORCH = (
    "gloo is measured where torch is: pip install torch --index-url "
    "https://download.pytorch.org/whl/cpu"
)
# These rows have no figures with fresh data, so their other figures are judged.
NO_DATA = {"barrier", "allreduce 32 B in @njit"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cobre_comm benchmarks")
    group.addoption("--short", action="store_true", help="what the targets judge")
    group.addoption("--rounds", type=int, default=11, help="blocks of each side (default: 11)")
    group.addoption("--block", type=float, default=0.02, help="seconds of a block (default: 0.02)")
    group.addoption("--most", type=float, default=4.0, help="seconds of all blocks (default: 4)")


def pytest_configure(config: pytest.Config) -> None:
    # After a failed job its tests have nothing to record, and pytest-benchmark warns about that.
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")
    # pytest-benchmark warns if every measurement has failed. If this warning were an error, it
    # would hide the cause.
    warnings.filterwarnings("default", "Not saving anything")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any(collection_path.name in word for word in config.args)
    return True if collection_path.name in BY_NAME and not named else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if items and items[0].config.getoption("short"):
        left_out = [item for item in items if item.path.is_relative_to(HERE) and not is_short(item)]
        items[0].config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        if "record" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.benchmark(timer=replayed_clock))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make each figure of a row a benchmark; ``FIGURES`` of a module has the figures by test."""
    made = getattr(metafunc.module, "FIGURES", {}).get(metafunc.function.__name__)
    if made is None:
        return
    skip = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason=NO_TORCH)
    metafunc.parametrize(
        "figure",
        [
            pytest.param(figure, id=figure.id, marks=[skip] * (figure.job.library == GLOO))
            for figure in dict.fromkeys(made())
        ],
    )


def is_short(item: pytest.Item) -> bool:
    """Whether the first tables of the report judge this benchmark."""
    if item.path.name not in SHORT or item.originalname in LONG:
        return False
    params = item.callspec.params
    figure = params.get("figure")
    if figure is None:
        return params.get("what", "hello") == "hello"
    return figure.setting == FRESH or figure.label in NO_DATA


def pytest_benchmark_update_machine_info(machine_info: dict) -> None:
    machine_info.update(machine.description())


@pytest.hookimpl(tryfirst=True)
def pytest_report_header() -> str:
    return f"benchmarks: read ratios, not times; {machine.processor()}"


@pytest.fixture(scope="session")
def jobs(request: pytest.FixtureRequest) -> Jobs:
    """The jobs of all selected tests that have an argument ``figure``."""
    option = request.config.getoption
    figures = [
        item.callspec.params["figure"]
        for item in request.session.items
        if hasattr(item, "callspec") and "figure" in item.callspec.params
        and not any(mark.args[0] for mark in item.iter_markers("skipif"))
    ]  # fmt: skip
    most_s = MOST_SHORT_S if option("short") else option("most")
    options = Options(option("rounds"), option("block"), most_s)
    return Jobs(figures, options, partial(say_line, request.config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show the ratios of this run: pytest-benchmark's own tables lack them."""
    session = getattr(config, "_benchmarksession", None)
    infos = [each.extra_info for each in session.benchmarks] if session else []
    results = Results([figure_of(thin(info)) for info in infos if "label" in info])
    if any(record.ratio_to for record in results.records):
        terminalreporter.section("times of cobre_comm / the peer's")
        terminalreporter.write_line(ratio_table(results))


def say_line(config: pytest.Config, line: str) -> None:
    """Show a line while a test runs, because a job may take long."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        terminal.ensure_newline()
        terminal.write_line(line)


@pytest.fixture
def record(benchmark) -> Callable[..., None]:
    """Return a function that records measured seconds as this test's benchmark."""
    return partial(record_samples, benchmark)


@pytest.fixture
def record_figure(jobs: Jobs, record: Callable[..., None], figure: Figure) -> Callable[[], None]:
    """Record the figure of a test; the first figure of a job starts the job."""

    def measure_and_record() -> None:
        told = jobs.told(figure)
        if told is None:
            pytest.skip(f"{figure.side} is not there: pip install {figure.side}")
        record(**told)

    return measure_and_record
