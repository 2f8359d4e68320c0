import importlib

import pytest

import cobre_comm
from tests.command import python

HEAVY = ("numba", "llvmlite", "mpi4py", "numpy", "cobre_kernels", "multiprocessing", "asyncio")

PROBE = f"""
import os, sys
before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
import cobre_comm
print([name for name in {HEAVY} if name in sys.modules])
print([name for name in sys.modules if name.startswith("cobre_comm.")])
import threading
print(threading.active_count())
"""


def probe(code):
    return python("-W", "error", "-c", code).stdout.splitlines()


def test_import_brings_nothing_heavy():
    assert probe(PROBE) == ["[]", "[]", "1"]


def test_errors_and_configuration_come_without_numba():
    names = "CollectiveFailed, ShmConfig, BackendKind, ReduceOp, available_backends"
    code = f"from cobre_comm import {names}\nimport sys\nprint('numba' in sys.modules)"
    assert probe(code) == ["False"]


def test_mpi4py_is_never_imported_by_other_backends():
    code = "import sys, cobre_comm\ncobre_comm.create_communicator('local').barrier()\n"
    assert probe(code + "print('mpi4py' in sys.modules)") == ["False"]


@pytest.mark.parametrize("name", cobre_comm.__all__)
def test_public_name(name):
    assert getattr(cobre_comm, name) is not None
    assert name in dir(cobre_comm)


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
    "ReduceOp",
    "SharedMemoryProvider",
    "SharedRegion",
    "ShmBackend",
    "ShmConfig",
    "TcpBackend",
    "TcpConfig",
    "WorkerError",
    "WorkerInfo",
    "available_backends",
    "check_signals",
    "create_communicator",
    "launch",
    "report_progress",
}


def test_all_is_sorted_and_complete():
    assert sorted(cobre_comm.__all__) == list(cobre_comm.__all__)
    assert set(cobre_comm.__all__) <= PROMISED | {"LaunchResult", "MpiConfig"}
    assert set(cobre_comm.__all__) >= PROMISED


def test_names_are_where_type_checkers_look():
    source = importlib.util.find_spec("cobre_comm").loader.get_source("cobre_comm")
    for name in cobre_comm.__all__:
        assert f"import {name} as {name}" in source or f"{name} = " in source, name


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such_thing"):
        cobre_comm.no_such_thing  # noqa: B018
