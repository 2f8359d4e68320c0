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
# Over mpi, of each class of the suite, a quick run has these.
QUICK_OVER_MPI = {
    "test_calls",
    "test_timeout",
    "test_killed_while_others_wait",
    "test_disagreement_at_a_random_step",
    "test_others_learn_of_an_interrupted_rank",
    "test_second_thread_is_refused",
    "test_without_compilation",
}


def kind_of_run(test, params):
    """Return "quick", "slow" or "never" for a test with these parameters."""
    backend = params.get("backend", params.get("watchful_backend", "shm"))
    chosen = {"caller": CALLERS.get(backend, "njit"), **STANDS_FOR_ALL}
    is_chosen = all(params.get(name, value) == value for name, value in chosen.items())
    if not BackendName.parse(backend).is_mpi:
        return "quick" if is_chosen else "slow"
    if params.get("times", 1) > 1:
        return "never"
    if is_chosen:
        return "quick" if test in QUICK_OVER_MPI else "slow"
    return "slow" if backend in THOROUGH_OVER_MPI else "never"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    here = str(pathlib.Path(__file__).parent)
    never = []
    for item in items:
        if not str(item.path).startswith(here) or not hasattr(item, "callspec"):
            continue
        kind = kind_of_run(item.originalname, item.callspec.params)
        if kind == "slow":
            item.add_marker(pytest.mark.slow)
        elif kind == "never":
            never.append(item)
    if never:
        config.hook.pytest_deselected(items=never)
        items[:] = [item for item in items if item not in set(never)]
