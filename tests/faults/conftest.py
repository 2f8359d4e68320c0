import pathlib
import signal

import pytest

from cobre_comm.testing import BackendName
from tests.grid import THOROUGH_OVER_MPI

# Every operation waits in the same way, from Python and in compiled code, whichever rank is lost:
# over mpi, whose jobs take longer to start, these stand for all in a quick run.
STANDS_FOR_ALL = {"caller": "njit", "operation": "allreduce", "victim": 1, "number": signal.SIGINT}


def kind_of_run(params):
    """Return "quick", "slow" or "never" for a test with these parameters."""
    backend = params.get("backend", params.get("watchful_backend", "shm"))
    if not BackendName.parse(backend).is_mpi:
        return "quick" if _is_for_every_day(backend, params) else "slow"
    if all(params.get(name, chosen) == chosen for name, chosen in STANDS_FOR_ALL.items()):
        return "quick" if params.get("times", 1) == 1 else "never"
    return "slow" if backend in THOROUGH_OVER_MPI and params.get("times", 1) == 1 else "never"


def _is_for_every_day(backend, params):
    """One caller for each backend; the other operations over shm, as they wait in the same way."""
    callers = {"shm": "python", "tcp": "njit"}
    if params.get("caller") not in (None, callers.get(backend, params.get("caller"))):
        return False
    if params.get("operation", STANDS_FOR_ALL["operation"]) != STANDS_FOR_ALL["operation"]:
        return backend == "shm"
    return params.get("victim", 1) == 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    here = str(pathlib.Path(__file__).parent)
    never = []
    for item in items:
        if not str(item.path).startswith(here) or not hasattr(item, "callspec"):
            continue
        kind = kind_of_run(item.callspec.params)
        if kind == "slow":
            item.add_marker(pytest.mark.slow)
        elif kind == "never":
            never.append(item)
    if never:
        config.hook.pytest_deselected(items=never)
        items[:] = [item for item in items if item not in set(never)]
