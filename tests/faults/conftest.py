import pathlib
import signal

import pytest

from cobre_comm.testing import BackendName
from tests.grid import THOROUGH_OVER_MPI

# Every operation waits in the same way, from Python and in compiled code, with any lost rank, at
# any signal: in a quick run these stand for all. Over mpi, whose jobs take longer to start, other
# values are for the long run on some of its backends only.
STANDS_FOR_ALL = {
    "operation": "allreduce",
    "victim": 1,
    "number": signal.SIGINT,
    "how": "exit",
    "code": 0,
}
CALLERS = {"shm": "python"}  # elsewhere compiled code


def kind_of_run(params):
    """Return "quick", "slow" or "never" for a test with these parameters."""
    backend = params.get("backend", params.get("watchful_backend", "shm"))
    chosen = {"caller": CALLERS.get(backend, "njit"), **STANDS_FOR_ALL}
    is_chosen = all(params.get(name, value) == value for name, value in chosen.items())
    if not BackendName.parse(backend).is_mpi:
        return "quick" if is_chosen else "slow"
    if params.get("times", 1) > 1:
        return "never"
    if is_chosen:
        return "quick"
    return "slow" if backend in THOROUGH_OVER_MPI else "never"


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
