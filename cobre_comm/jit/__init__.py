"""The communicator in ``@njit`` code.

``types`` has the numba types of communicators and regions, ``methods`` their methods,
``arguments`` the checks of arguments. Backends call ``register``.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a type that pickles of version 0.1.0 name; their type names carry that version."""
    if name in ("LocalCommType", "ShmCommType", "TcpCommType", "MpiCommType", "RegionType"):
        from cobre_comm.jit import types

        return getattr(types, name, types.CommType)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
