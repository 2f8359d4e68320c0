"""Collective communication for Python programs whose hot loops are numba-compiled.

Importing this package starts nothing, opens nothing, and imports neither MPI nor a backend. A name
of this package loads its module when the name is first used.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cobre_comm.backends.local.backend import LocalBackend as LocalBackend
    from cobre_comm.backends.mpi.backend import MpiBackend as MpiBackend
    from cobre_comm.backends.shm.backend import ShmBackend as ShmBackend
    from cobre_comm.backends.tcp.backend import TcpBackend as TcpBackend
    from cobre_comm.config import BackendKind as BackendKind
    from cobre_comm.config import MpiConfig as MpiConfig
    from cobre_comm.config import ShmConfig as ShmConfig
    from cobre_comm.config import TcpConfig as TcpConfig
    from cobre_comm.contract.clock import monotonic_ns as monotonic_ns
    from cobre_comm.contract.communicator import Communicator as Communicator
    from cobre_comm.contract.communicator import SharedMemoryProvider as SharedMemoryProvider
    from cobre_comm.contract.phases import Phase as Phase
    from cobre_comm.contract.shared_region import HeapRegion as HeapRegion
    from cobre_comm.contract.shared_region import SharedRegion as SharedRegion
    from cobre_comm.contract.signals import check_signals as check_signals
    from cobre_comm.contract.topology import Topology as Topology
    from cobre_comm.contract.work import Work as Work
    from cobre_comm.errors import AllocationFailed as AllocationFailed
    from cobre_comm.errors import BackendError as BackendError
    from cobre_comm.errors import BackendNotAvailable as BackendNotAvailable
    from cobre_comm.errors import CollectiveFailed as CollectiveFailed
    from cobre_comm.errors import CommError as CommError
    from cobre_comm.errors import InitializationFailed as InitializationFailed
    from cobre_comm.errors import InvalidBackend as InvalidBackend
    from cobre_comm.errors import InvalidBufferSize as InvalidBufferSize
    from cobre_comm.errors import InvalidCommunicator as InvalidCommunicator
    from cobre_comm.errors import InvalidRoot as InvalidRoot
    from cobre_comm.errors import MissingConfiguration as MissingConfiguration
    from cobre_comm.errors import WorkerError as WorkerError
    from cobre_comm.factory import available_backends as available_backends
    from cobre_comm.factory import create_communicator as create_communicator
    from cobre_comm.journal.stats import OperationStats as OperationStats
    from cobre_comm.journal.stats import PhaseStats as PhaseStats
    from cobre_comm.journal.stats import Stats as Stats
    from cobre_comm.journal.stats import WayStats as WayStats
    from cobre_comm.launching.launch import LaunchResult as LaunchResult
    from cobre_comm.launching.launch import WorkerInfo as WorkerInfo
    from cobre_comm.launching.launch import launch as launch
    from cobre_comm.launching.launch import report_progress as report_progress
    from cobre_comm.reduce_op import ReduceOp as ReduceOp

    CommBackend = LocalBackend | ShmBackend | TcpBackend | MpiBackend

__version__ = "0.5.0"

_HOME_OF = {
    name: home
    for home, names in {
        "backends.local.backend": "LocalBackend",
        "backends.mpi.backend": "MpiBackend",
        "backends.shm.backend": "ShmBackend",
        "backends.tcp.backend": "TcpBackend",
        "backends.union": "CommBackend",
        "config": "BackendKind MpiConfig ShmConfig TcpConfig",
        "contract.clock": "monotonic_ns",
        "contract.communicator": "Communicator SharedMemoryProvider",
        "contract.phases": "Phase",
        "contract.shared_region": "HeapRegion SharedRegion",
        "contract.signals": "check_signals",
        "contract.topology": "Topology",
        "contract.work": "Work",
        "errors": "AllocationFailed BackendError BackendNotAvailable CollectiveFailed CommError "
        "InitializationFailed InvalidBackend InvalidBufferSize InvalidCommunicator InvalidRoot "
        "MissingConfiguration WorkerError",
        "factory": "available_backends create_communicator",
        "journal.stats": "OperationStats PhaseStats Stats WayStats",
        "launching.launch": "LaunchResult WorkerInfo launch report_progress",
        "reduce_op": "ReduceOp",
    }.items()
    for name in names.split()
}
_NO_LONGER_PUBLIC = {"routine": "contract.routine"}  # a use warns; the next version lacks the name

_MODULES = ("objects", "random", "testing")  # the modules for users; all other modules are private

__all__ = sorted(_HOME_OF)  # names are loaded on first use


def __getattr__(name: str) -> Any:
    if name in _MODULES or name in _HOME_OF or name in _NO_LONGER_PUBLIC:
        importlib.import_module("cobre_comm.sources").check_halves()
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NO_LONGER_PUBLIC:
        said = f"cobre_comm.{name} goes with the next version: decorate by numba.njit in its place"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(f"{__name__}.{_NO_LONGER_PUBLIC[name]}"), name)
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "create_communicator":
        importlib.import_module("cobre_comm.reports.seat").claim()
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__doc__", "__version__"]


# This variable (report_pipe.HOLDS_VARIABLE) shows that cobre-comm run has started this process.
if "COBRE_REPORT_HOLDS" in os.environ:
    importlib.import_module("cobre_comm.reports.report_pipe").listen()
