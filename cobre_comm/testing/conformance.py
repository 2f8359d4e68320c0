"""The conformance suite: tests that every backend passes, whether of this project or of another.

Most distributions need ``ConformanceSuite`` and ``Grid`` alone. Each file of
``cobre_comm.testing.cases`` is also a class of its own, such as ``AllreduceTests``. A class is
loaded when it is first used, because it needs pytest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cobre_comm.testing.cases.case import Slow as Slow
    from cobre_comm.testing.suite.grid import Grid as Grid
    from cobre_comm.testing.suite.part import FEATURES as FEATURES
    from cobre_comm.testing.suite.part import Part as Part
    from cobre_comm.testing.suite.parts import PARTS as PARTS
    from cobre_comm.testing.suite.parts import ConformanceSuite as ConformanceSuite

_HOME_OF = {
    "ConformanceSuite": "parts",
    "FEATURES": "part",
    "Grid": "grid",
    "PARTS": "parts",
    "Part": "part",
    "Slow": "grid",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF and not name.endswith("Tests"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"cobre_comm.testing.suite.{_HOME_OF.get(name, 'parts')}")
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        raise ModuleNotFoundError(
            f"{__name__}.{name} needs {error.name}: pip install 'cobre-comm[conformance]'",
            name=error.name,
        ) from error
    if name in _HOME_OF:
        return getattr(home, name)
    if name not in home.PARTS:
        raise AttributeError(f"no part {name!r}; choose from {', '.join(home.PARTS)}")
    return home.PARTS[name]


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF, *__getattr__("PARTS")]
