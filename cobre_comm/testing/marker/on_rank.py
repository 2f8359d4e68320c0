"""A marked test on one rank: the function runs in a session of pytest that collects nothing.

In that session pytest rewrites the asserts of the module as it does in its own process, so a
failing assert shows its values.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import pickle
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cobre_comm.reports.report_pipe import lost_ranks

PASSED, SKIPPED, XFAILED, FAILED = "passed", "skipped", "xfailed", "failed"
# The session loads pytest's own plugins alone, no conftest.py, and no file of options.
OPTIONS = (
    "--noconftest",
    "-c",
    os.devnull,
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
    "-s",
)


@dataclass(frozen=True)
class Call:
    """A test function and its arguments."""

    module: str  # the name of its module
    path: str  # the file of its module
    function: str  # its qualified name in the module
    values: Mapping[str, bytes]  # values of fixtures and parameters, pickled
    rewritten: Sequence[str]  # modules whose asserts pytest has rewritten
    options: Sequence[str]  # options of pytest's command line that say how a failure is shown


@dataclass(frozen=True)
class Result:
    """The result of a test on one rank."""

    outcome: str = PASSED  # `"passed"`, `"skipped"`, `"xfailed"` or `"failed"`
    line: str = ""  # the text of the exception, in a line
    where: str = ""  # where it was raised
    text: str = ""  # the failure as pytest shows it
    lost: tuple[int, ...] = ()  # the lost ranks that the failure names


def meet(comm: Any) -> None:
    """Call one collective, so that its modules are loaded outside of any test's time."""
    comm.barrier()


def run_test(comm: Any, call: Call) -> Result:
    """Run a test on this rank."""
    session = _Session(comm, call)
    with pytest.MonkeyPatch.context() as patch, open(os.devnull, "w") as null:  # noqa: PTH123
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            patch.delenv(name, raising=False)
        with contextlib.redirect_stdout(null):  # hides pytest's header
            pytest.main([*OPTIONS, *call.options], plugins=[session])
    sys.stdout.flush()
    return session.result


class _Session:
    """A plugin that runs one function in place of the tests of a session."""

    def __init__(self, comm: Any, call: Call) -> None:
        self._comm = comm
        self._call = call
        self._stdout = sys.stdout
        self.result = Result(FAILED, "pytest did not run the test: see the rank's output")

    def pytest_collection(self) -> bool:
        """Collect nothing."""
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the test."""
        with contextlib.redirect_stdout(self._stdout), _explaining(session.config):
            try:
                self.result = _result_of(self._run(), self._call.function)
            except pytest.skip.Exception as reason:
                self.result = Result(SKIPPED, str(reason))
            except pytest.xfail.Exception as reason:
                self.result = Result(XFAILED, str(reason))
            except BaseException as error:
                self.result = _failure(error, session.config, self._call.path)
        return True

    def _run(self) -> Any:
        """Call the function; return its value."""
        call = self._call
        pytest.register_assert_rewrite(*[n for n in call.rewritten if n not in sys.modules])
        with warnings.catch_warnings():  # about marks of plugins that a rank lacks
            warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
            function: Any = _import(call.module, call.path)
        for name in call.function.split("."):
            function = getattr(function() if isinstance(function, type) else function, name)
        values = {name: pickle.loads(value) for name, value in call.values.items()}
        try:
            return function(comm=self._comm, **values)
        finally:
            for value in values.values():
                if isinstance(value, pytest.MonkeyPatch):
                    value.undo()


def _result_of(returned: Any, function: str) -> Result:
    """Return a failure if the function returned a coroutine or a generator, which has not run."""
    is_body = any(
        check(returned) for check in (inspect.iscoroutine, inspect.isasyncgen, inspect.isgenerator)
    )
    if not is_body:
        return Result()
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that the coroutine was never awaited
    name = function.rpartition(".")[2]
    return Result(
        FAILED,
        f"{name} has not run, for it is async or a generator: ranks run plain functions, and "
        "asyncio.run in one runs what is async",
    )


def _explaining(config: pytest.Config) -> Any:
    """Return a context in which failing asserts show the values that they compare."""
    plugin: Any = config.pluginmanager.get_plugin("assertion")
    item = SimpleNamespace(config=config, ihook=config.hook)
    return contextlib.contextmanager(plugin.pytest_runtest_protocol)(item)


def _import(name: str, path: str) -> ModuleType:
    try:
        module = importlib.import_module(name)
        if getattr(module, "__file__", None) == path:
            return module
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    # pytest has imported this module by its path (--import-mode=importlib).
    spec = next(filter(None, (f.find_spec(name, [str(Path(path).parent)]) for f in sys.meta_path)))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def _failure(error: BaseException, config: pytest.Config, path: str) -> Result:
    info = pytest.ExceptionInfo.from_exception(error)
    style = config.getoption("tbstyle")
    shown = info.getrepr(
        style="long" if style == "auto" else style,
        showlocals=config.getoption("showlocals"),
        tbfilter=lambda each: each.traceback.cut(path=path).filter(each).filter(_is_of_the_test),
    )
    crash, text = shown.reprcrash, str(shown)
    where = f"{crash.path}:{crash.lineno}" if crash else ""
    line = info.exconly(tryshort=True).partition("\n")[0]
    text = text if text.startswith(">") else f"    {text}"  # str() has stripped the indentation
    return Result(FAILED, line, where, text, lost_ranks(error))


def _is_of_the_test(entry: Any) -> bool:
    """Tell whether to show a frame; frames of contextlib, added by ``rank_raises``, are hidden."""
    return Path(entry.path).name != "contextlib.py"
