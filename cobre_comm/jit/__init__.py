"""The communicator in ``@njit`` code.

``types`` tells numba what a communicator and a region are, ``methods`` what they can do there,
``arguments`` what may be passed to them; ``register`` is what backends call.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return what pickles of version 0.1.0 name; their types carry that version in their names."""
    if name in ("LocalCommType", "ShmCommType", "TcpCommType", "MpiCommType", "RegionType"):
        from cobre_comm.jit import types

        return getattr(types, name, types.CommType)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
