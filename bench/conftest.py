"""Options and fixtures of the benchmarks: how long to measure, and what becomes of the samples."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import machine
import pytest
from jobs import Jobs
from recording import record as record_samples
from recording import replayed_clock

HERE = Path(__file__).parent
# A job of ranks is the set-up of its first test; it has a deadline of its own.
TIMEOUT_S = 7500


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cobre_comm benchmarks")
    group.addoption("--full", action="store_true", help="the long grid, not the essentials alone")
    group.addoption("--rounds", type=int, default=15, help="blocks of each side (default: 15)")
    group.addoption("--block", type=float, default=0.03, help="seconds of a block (default: 0.03)")


def pytest_configure(config: pytest.Config) -> None:
    # Where a job has failed its tests have nothing to record, and say so.
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        if "record" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.benchmark(timer=replayed_clock))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_benchmark_update_machine_info(machine_info: dict) -> None:
    machine_info.update(machine.description())


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_compare_machine_info(machine_info: dict, compared_benchmark: dict) -> None:
    """Have ``--benchmark-compare`` warn of another machine, not of another load or commit."""
    compared = compared_benchmark["machine_info"]
    compared.update({name: machine_info.get(name) for name in machine.CHANGING})


@pytest.hookimpl(tryfirst=True)
def pytest_report_header() -> str:
    return f"benchmarks: read ratios, not times; {machine.processor()}"


@pytest.fixture(scope="session")
def jobs(request: pytest.FixtureRequest) -> Jobs:
    """The jobs of ranks of all selected tests with an argument ``figure``; see ``jobs.Jobs``."""
    option = request.config.getoption
    figures = [
        item.callspec.params["figure"]
        for item in request.session.items
        if hasattr(item, "callspec") and "figure" in item.callspec.params
        and not any(mark.args[0] for mark in item.iter_markers("skipif"))
    ]  # fmt: skip
    say = partial(say_line, request.config)
    return Jobs(figures, option("rounds"), option("block"), option("full"), say)


def say_line(config: pytest.Config, line: str) -> None:
    """Show a line while a test runs: a job takes its time."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        terminal.ensure_newline()
        terminal.write_line(line)


@pytest.fixture
def record(benchmark, pytestconfig):
    """Make measured seconds this test's benchmark: see ``recording.record``."""
    return partial(record_samples, benchmark, full=pytestconfig.getoption("full"))
