"""Our objects and functions in ``@njit`` code.

``types`` has the numba types of communicators, regions and works. ``methods`` has the methods of
communicators, ``regions`` and ``works`` have those of regions and works, and ``arguments`` has the
checks of arguments. ``register`` imports all of these.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a class for a pickle of version 0.1.0, in which the name of a type has the version."""
    if name in ("LocalCommType", "ShmCommType", "TcpCommType", "MpiCommType", "RegionType"):
        from cobre_comm.jit import types

        return getattr(types, name, types.CommType)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
