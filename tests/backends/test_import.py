import importlib

import pytest

import cobre_comm
from tests.command import python

HEAVY = ("numba", "llvmlite", "mpi4py", "numpy", "cobre_kernels", "multiprocessing", "asyncio")

# What a program does, and what it must not have imported by then.
PROGRAMS = {
    "import": ("import cobre_comm", HEAVY),
    "errors and configuration": (
        "from cobre_comm import BackendKind, CollectiveFailed, ReduceOp, ShmConfig, "
        "available_backends",
        ("numba",),
    ),
    "one of our backends": (
        "import cobre_comm; cobre_comm.create_communicator('local').barrier()",
        ("mpi4py", "numba", "importlib.metadata"),
    ),
    "the backend of MPI": (
        "from cobre_comm import MpiBackend, available_backends; available_backends()",
        ("mpi4py.MPI",),
    ),
    "command line": (
        "import cobre_comm.cli as cli; cli.main(['--help']); import cobre_comm.check.command",
        ("numba", "numpy", "difflib"),
    ),
}  # fmt: skip


def last_line_of(program):
    return python("-W", "error", "-c", program).stdout.splitlines()[-1]


@pytest.mark.parametrize("what", PROGRAMS)
def test_nothing_heavy_is_imported(what):
    program, heavy = PROGRAMS[what]
    show = f"import sys; print([name for name in {heavy} if name in sys.modules])"
    assert last_line_of(f"{program}\n{show}") == "[]"


def test_import_brings_no_part_and_no_thread():
    parts = "[name for name in sys.modules if name.startswith('cobre_comm.')]"
    program = f"import cobre_comm, sys, threading; print({parts}, threading.active_count())"
    assert last_line_of(program) == "[] 1"


@pytest.mark.parametrize("name", cobre_comm.__all__)
def test_public_name(name):
    assert getattr(cobre_comm, name) is not None
    assert name in dir(cobre_comm)


def test_dir_lists_what_users_need_and_nothing_else():
    modules = ["objects", "random", "testing"]
    assert sorted(dir(cobre_comm)) == sorted(
        [*cobre_comm.__all__, *modules, "__doc__", "__version__"]
    )
    assert all(hasattr(cobre_comm, name) for name in dir(cobre_comm))


PROMISED = {
    "AllocationFailed",
    "BackendError",
    "BackendKind",
    "BackendNotAvailable",
    "CollectiveFailed",
    "CommBackend",
    "CommError",
    "Communicator",
    "HeapRegion",
    "InitializationFailed",
    "InvalidBackend",
    "InvalidBufferSize",
    "InvalidCommunicator",
    "InvalidRoot",
    "LocalBackend",
    "MissingConfiguration",
    "MpiBackend",
    "OperationStats",
    "Phase",
    "PhaseStats",
    "ReduceOp",
    "SharedMemoryProvider",
    "SharedRegion",
    "ShmBackend",
    "ShmConfig",
    "Stats",
    "TcpBackend",
    "TcpConfig",
    "Topology",
    "WayStats",
    "Work",
    "WorkerError",
    "WorkerInfo",
    "available_backends",
    "check_signals",
    "create_communicator",
    "launch",
    "monotonic_ns",
    "report_progress",
}


def test_all_is_sorted_and_complete():
    assert sorted(cobre_comm.__all__) == list(cobre_comm.__all__)
    assert set(cobre_comm.__all__) <= PROMISED | {
        "LaunchResult",
        "MpiConfig",
        "monotonic_ns",
    }
    assert set(cobre_comm.__all__) >= PROMISED


def test_names_are_where_type_checkers_look():
    source = importlib.util.find_spec("cobre_comm").loader.get_source("cobre_comm")
    for name in cobre_comm.__all__:
        assert f"import {name} as {name}" in source or f"{name} = " in source, name


def test_a_name_that_is_no_longer_public_says_what_to_write():
    with pytest.warns(DeprecationWarning, match=r"decorate by numba\.njit") as warned:
        assert callable(cobre_comm.routine)
    assert warned[0].filename == __file__
    assert not {"routine"} & {*cobre_comm.__all__, *dir(cobre_comm)}


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such_thing"):
        cobre_comm.no_such_thing  # noqa: B018
