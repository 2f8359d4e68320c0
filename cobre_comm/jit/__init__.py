"""The communicator in ``@njit`` code.

``types`` tells numba what a communicator and a region are, ``methods`` what they can do there,
``arguments`` what may be passed to them.

numba keeps the types of a user's cached function in pickles, and loads them before it looks at
their version. So types are pickled by the name of :func:`restored`, which every version has.
"""

from typing import Any


def restored(version: str, name: str, *arguments: Any) -> Any:
    """Return a pickled type; of another version, a type that equals no other."""
    from numba.core.types import Opaque

    from cobre_comm.jit import types

    if version != types.version_tag():
        return Opaque(f"{name}({version})")
    return getattr(types, name)(*arguments)


def __getattr__(name: str) -> Any:
    """Return what pickles of version 0.1.0 name; their types carry that version in their names."""
    if name in ("LocalCommType", "ShmCommType", "TcpCommType", "MpiCommType", "RegionType"):
        from cobre_comm.jit import types

        return getattr(types, name, types.CommType)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
